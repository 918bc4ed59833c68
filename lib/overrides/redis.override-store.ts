import { RateLimitStoreError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import { ChannelListener } from '../redis/channel-listener.js';
import { connect, CONNECT_TIMEOUT_MS, type RedisClient } from '../redis/client.js';
import { withDeadline } from '../redis/deadline.js';
import { overridesKey } from '../stores/redis/keys.js';
import { RATES_SCRIPT } from '../redis/rates-script.generated.js';
import { Script } from '../redis/script.js';
import { readWholeNumber } from '../redis/whole-number.js';
import { asStoreError } from '../redis/store-error.js';
import type { OverrideAnswer, OverrideStore, OverrideChange, OverrideSnapshot } from './override-store.js';

/** How often the book is read though nothing was heard. */
const READ_EVERY_MS = 30_000;
/** How soon it is read again when it could not be. */
const RETRY_AFTER_MS = 1000;

export interface RedisOverrideStoreOptions {
  readonly prefix: string;
  readonly timeoutMs: number;
}

/** Keeps changed rates in a hash on Redis, which all instances read. */
export class RedisOverrideStore implements OverrideStore {
  private readonly script: Script;
  private readonly key: string;
  private readonly timeoutMs: number;
  private readonly listener: ChannelListener;
  private timer: NodeJS.Timeout | undefined;
  private changed: (page: OverrideSnapshot) => void = () => undefined;
  private unread = false;
  private closed = false;

  constructor(
    private readonly client: RedisClient,
    { prefix, timeoutMs }: RedisOverrideStoreOptions,
  ) {
    this.script = new Script(client, RATES_SCRIPT);
    this.key = overridesKey(prefix);
    this.timeoutMs = timeoutMs;
    this.listener = new ChannelListener(client, this.key, this.refresh);
  }

  /** Never rejects: an app starts without Redis, with its configured rates. */
  async watch(changed: (page: OverrideSnapshot) => void): Promise<void> {
    this.changed = changed;
    const since = performance.now();
    const connected = await connect(this.client).then(
      () => true,
      () => false,
    );
    if (this.closed) return;
    this.client.on('ready', this.refresh);
    const first = Promise.all([this.update(CONNECT_TIMEOUT_MS), this.listener.start()]);
    // What is missing then is tried again and again.
    if (!connected) return;
    await withDeadline(first, since + CONNECT_TIMEOUT_MS - performance.now()).catch(() => undefined);
  }

  async read(): Promise<OverrideSnapshot> {
    const { snapshot } = await this.call(this.timeoutMs, 'read');
    return snapshot;
  }

  write({ operation, name, patch, inherit, lastsMs, quota, configuredQuota }: OverrideChange): Promise<OverrideAnswer> {
    const numbers = [lastsMs, quota, configuredQuota].map(String);
    return this.call(this.timeoutMs, operation, this.key, name, patch, inherit, ...numbers);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.client.off('ready', this.refresh);
    this.listener.close();
  }

  private readonly refresh = (): void => void this.update(this.timeoutMs);

  /** Reads the book, now and again later: one timer is enough, since each reading sets it anew. */
  private async update(timeoutMs: number): Promise<void> {
    let again = READ_EVERY_MS;
    try {
      const { snapshot } = await this.call(timeoutMs, 'read');
      this.unread = false;
      if (!this.closed) this.changed(snapshot);
    } catch (error) {
      again = RETRY_AFTER_MS;
      this.failed(error);
    }
    clearTimeout(this.timer);
    if (!this.closed) this.timer = setTimeout(this.refresh, again).unref();
  }

  /** What Redis says against reading is news; that it is not there is what the checks tell. */
  private failed(error: unknown): void {
    const reason = error instanceof RateLimitStoreError ? error.cause : error;
    if (this.unread || this.closed || !(reason instanceof Error) || reason.name !== 'ReplyError') return;
    this.unread = true;
    logger.warn(messages.ratesUnread(reason.message));
  }

  private async call(timeoutMs: number, ...args: string[]): Promise<OverrideAnswer> {
    const { status } = this.client;
    if (status !== 'ready') throw new RateLimitStoreError(messages.storeNotReady(status));
    try {
      return readAnswer(await withDeadline(this.script.run([this.key], args, timeoutMs), timeoutMs));
    } catch (error) {
      throw asStoreError(error);
    }
  }
}

/** Reads the reply of `lua/rates.lua`. Throws a `TypeError` for what it never replies. */
function readAnswer(reply: unknown): OverrideAnswer {
  if (!Array.isArray(reply) || reply.length % 2 > 0) throw new TypeError(messages.noReply(reply));
  const [done, now] = reply.slice(0, 2).map(readWholeNumber);
  if (done === undefined || now === undefined) throw new TypeError(messages.noReply(reply));
  const records = new Map<string, string>();
  for (let index = 2; index < reply.length; index += 2) records.set(String(reply[index]), String(reply[index + 1]));
  return { done: done === 1, snapshot: { now, records } };
}
