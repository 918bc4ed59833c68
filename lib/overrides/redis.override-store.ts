import { RateLimitStoreError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import { ChannelListener } from '../redis/channel-listener.js';
import { connect, CONNECT_TIMEOUT_MS, type RedisClient } from '../redis/client.js';
import { withDeadline } from '../redis/deadline.js';
import { noteSilence } from '../redis/silence.js';
import { overridesKey } from '../stores/redis/keys.js';
import { OVERRIDES_SCRIPT } from './overrides-script.generated.js';
import { Script } from '../redis/script.js';
import { readWholeNumber } from '../redis/whole-number.js';
import { asStoreError } from '../redis/store-error.js';
import type { OverrideAnswer, OverrideStore, OverrideChange, OverrideSnapshot } from './override-store.js';

/** The time between reads without a message of a change. */
const READ_EVERY_MS = 30_000;
/** The time until the next read after one that failed. */
const RETRY_AFTER_MS = 1000;

export interface RedisOverrideStoreOptions {
  readonly prefix: string;
  readonly timeoutMs: number;
}

/** Keeps overrides in a hash on Redis, which all instances read. */
export class RedisOverrideStore implements OverrideStore {
  private readonly script: Script;
  private readonly key: string;
  private readonly timeoutMs: number;
  private readonly listener: ChannelListener;
  private timer: NodeJS.Timeout | undefined;
  private onChange: (snapshot: OverrideSnapshot) => void = () => undefined;
  private warned = false;
  private closed = false;

  constructor(
    private readonly client: RedisClient,
    { prefix, timeoutMs }: RedisOverrideStoreOptions,
  ) {
    this.script = new Script(client, OVERRIDES_SCRIPT);
    this.key = overridesKey(prefix);
    this.timeoutMs = timeoutMs;
    this.listener = new ChannelListener(client, this.key, this.refresh);
  }

  /** Never rejects: an app starts without Redis, with its configured rates. */
  async watch(onChange: (snapshot: OverrideSnapshot) => void): Promise<void> {
    this.onChange = onChange;
    const since = performance.now();
    const connected = await connect(this.client).then(
      () => true,
      () => false,
    );
    if (this.closed) return;
    this.client.on('ready', this.refresh);
    const first = Promise.all([this.update(CONNECT_TIMEOUT_MS), this.listener.start()]);
    // Without a connection, timers and the listener try again later.
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

  /** Reads the store now and later again: each read sets the one timer anew. */
  private async update(timeoutMs: number): Promise<void> {
    let nextMs = READ_EVERY_MS;
    try {
      const { snapshot } = await this.call(timeoutMs, 'read');
      this.warned = false;
      if (!this.closed) this.onChange(snapshot);
    } catch (error) {
      nextMs = RETRY_AFTER_MS;
      this.warn(error);
    }
    clearTimeout(this.timer);
    if (!this.closed) this.timer = setTimeout(this.refresh, nextMs).unref();
  }

  /** Warns of an error reply, once until the next read that succeeds. Failing connections are the checks' to tell. */
  private warn(error: unknown): void {
    const reason = error instanceof RateLimitStoreError ? error.cause : error;
    if (this.warned || this.closed || !(reason instanceof Error) || reason.name !== 'ReplyError') return;
    this.warned = true;
    logger.warn(messages.overridesUnreadable(reason.message));
  }

  private async call(timeoutMs: number, ...args: string[]): Promise<OverrideAnswer> {
    const { status } = this.client;
    if (status !== 'ready') throw new RateLimitStoreError(messages.storeNotReady(status));
    try {
      return readAnswer(await withDeadline(this.script.run([this.key], args, timeoutMs), timeoutMs));
    } catch (error) {
      if (error instanceof RateLimitStoreError) noteSilence(this.client);
      throw asStoreError(error);
    }
  }
}

/** Reads the reply of `lua/overrides.lua`. Throws a `TypeError` if the script cannot have sent it. */
function readAnswer(reply: unknown): OverrideAnswer {
  if (!Array.isArray(reply) || reply.length % 2 > 0) throw new TypeError(messages.noReply(reply));
  const [done, now] = reply.slice(0, 2).map(readWholeNumber);
  if (done === undefined || now === undefined) throw new TypeError(messages.noReply(reply));
  const records = new Map<string, string>();
  for (let index = 2; index < reply.length; index += 2) records.set(String(reply[index]), String(reply[index + 1]));
  return { done: done === 1, snapshot: { now, records } };
}
