import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { type Job, Queue, Worker } from 'bullmq';
import { LimiterService } from 'nestjs-sluice';
import { rateLimited } from 'nestjs-sluice/bullmq';
import { Settings } from '../settings/settings.js';

const NAME = 'syncs';

/** A shop that was synced. */
export interface Sync {
  readonly shop: string;
  readonly syncedAt: string;
}

function keyOf({ data: { shop } }: Job<{ shop: string }>): string {
  return `shop:${shop}`;
}

/** Syncs shops in jobs of BullMQ, two a second for each shop. It is there once somebody asks for it, and only with Redis. */
@Injectable()
export class SyncQueue implements OnModuleDestroy {
  /** The last ones. */
  private done: Sync[] = [];
  private queue: Queue<{ shop: string }> | undefined;
  private worker: Worker<{ shop: string }> | undefined;

  constructor(
    private readonly limits: LimiterService,
    private readonly settings: Settings,
  ) {}

  /** What was done, or nothing without Redis. */
  get syncs(): readonly Sync[] | undefined {
    return this.settings.redisUrl === undefined ? undefined : this.done;
  }

  /** Adds so many jobs of a shop. Says whether there is a queue. */
  async add(shop: string, count: number): Promise<boolean> {
    const { redisUrl: url } = this.settings;
    if (url === undefined) return false;
    this.queue ??= this.open(url);
    const jobs = Array.from({ length: count }, () => ({
      name: NAME,
      data: { shop },
      opts: { removeOnComplete: true },
    }));
    await this.queue.addBulk(jobs);
    return true;
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker?.close();
    await this.queue?.close();
  }

  private open(url: string): Queue<{ shop: string }> {
    const limiter = this.limits.for({ name: 'shop', algo: 'gcra', rate: 2, interval: '1s', burst: 1 });
    const sync = async ({ data: { shop } }: Job<{ shop: string }>) => {
      this.done = [...this.done, { shop, syncedAt: new Date().toISOString() }].slice(-100);
    };
    const connection = { url };
    this.worker = new Worker(NAME, rateLimited(sync, { limiter, key: keyOf }), { connection });
    return new Queue(NAME, { connection });
  }
}
