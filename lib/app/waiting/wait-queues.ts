import { Inject, Injectable, type OnApplicationShutdown, type OnModuleDestroy, Optional } from '@nestjs/common';
import type { RateLimitSettings } from '../config/settings.js';
import { RATE_LIMIT_LISTS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../config/tokens.js';
import type { LeaseEnd } from '../../engine/algorithms/algorithm.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { Counter } from '../../engine/limits/counter.js';
import type { Lists } from '../overrides/lists/lists.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { Charge } from '../../storage/stores/store.js';
import type { CallQueues, WaitRequest } from './call-queues.js';
import type { Turn } from './turn.js';
import type { WaitOptions } from './waiting-call.js';
import { RateLimitTimeoutError } from './waiting-errors.js';

let Queues: typeof CallQueues | undefined;
let loading: Promise<void> | undefined;

/** Loads the queues, as the first call that may have to wait does. */
export function loadQueues(): Promise<void> {
  return (loading ??= import('./call-queues.js').then((loaded) => void (Queues = loaded.CallQueues)));
}

interface KeptLease {
  release(end?: LeaseEnd): Promise<void>;
}

/** The leases that are renewed while the work of their holders continues. */
export class KeptLeases {
  private readonly leases = new Set<KeptLease>();
  private readonly whenNone: (() => void)[] = [];

  add(lease: KeptLease): void {
    this.leases.add(lease);
  }

  /** Removes a lease whose units have been released, or whose store failed. */
  delete(lease: KeptLease): void {
    if (!this.leases.delete(lease) || this.leases.size > 0) return;
    for (const resolve of this.whenNone.splice(0)) resolve();
  }

  /** Waits until all work has ended, but at most `waitMs` milliseconds, and then releases the remaining leases. Never rejects. */
  async end(waitMs: number): Promise<void> {
    await this.none(waitMs);
    const left = [...this.leases].map((lease) => lease.release('ignored').catch(() => undefined));
    await Promise.all(left);
  }

  private none(waitMs: number): Promise<void> {
    if (this.leases.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.whenNone.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** The waiting calls of this process. Their queues are only loaded when the first call may have to wait. */
@Injectable()
export class WaitQueues implements OnModuleDestroy, OnApplicationShutdown {
  /** The leases that are renewed while work continues. */
  readonly kept = new KeptLeases();
  private queues: CallQueues | undefined;
  private closed = false;

  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
    @Optional() @Inject(RATE_LIMIT_LISTS) private readonly lists?: Lists,
    @Optional() @Inject(RATE_LIMIT_SETTINGS) private readonly settings?: Pick<RateLimitSettings, 'maxWaiters'>,
  ) {}

  /** True if the app is shutting down. */
  get isClosed(): boolean {
    return this.closed;
  }

  /**
   * Waits until units of all limits can be used. Rejects with `RateLimitTimeoutError`, the signal's reason or the store's error; with
   * `RateLimitStoreError` when the app shuts down, and with `RateLimitWaitersError` if the module's `maxWaiters` calls already wait.
   */
  wait(request: WaitRequest, options: WaitOptions): Promise<Turn> {
    if (Queues === undefined) return loadQueues().then(() => this.wait(request, options));
    const queues = (this.queues ??= new Queues(this.store, this.lists, this.settings?.maxWaiters));
    if (!this.closed) return queues.wait(request, options);
    // Calls do not wait while the app shuts down.
    return queues.wait(request, { ...options, timeoutMs: 0 }).catch((error: unknown) => {
      throw error instanceof RateLimitTimeoutError ? closedError() : error;
    });
  }

  /** Refunds consumed units, of any call. */
  async refund(charge: Charge): Promise<void> {
    await (this.queues === undefined ? this.store.refund([charge]) : this.queues.refund(charge));
  }

  /** Makes calls that wait for units of a counter retry, because some may have been freed. Usually there are none. */
  wake(counter: Counter): void {
    this.queues?.wake(counter);
  }

  /** Reserves the units of all waiting calls again after a reset of the counter. */
  restart(counter: Counter): void {
    this.queues?.restart(counter);
  }

  /** Rejects all waiting calls, and refunds their units before the store closes. */
  async onModuleDestroy(): Promise<void> {
    this.closed = true;
    await this.queues?.close(closedError());
    await this.onApplicationShutdown();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.queues?.refunded();
  }
}

function closedError(): RateLimitStoreError {
  return new RateLimitStoreError(messages.closed(), { code: 'SLUICE_SHUTTING_DOWN' });
}
