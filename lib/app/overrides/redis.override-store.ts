import { setTimeout as sleep } from 'node:timers/promises';
import type { RateLimitSettings } from '../config/settings.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { logger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { ChannelListener } from '../../storage/redis/channel-listener.js';
import { connect, CONNECT_TIMEOUT_MS } from '../../storage/redis/client.js';
import type { Connection } from '../../storage/redis/connection.js';
import { asStoreError, isErrorReply, notConnected, serverOf } from '../../storage/redis/errors.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { Script } from '../../storage/redis/script.js';
import { noteSilence } from '../../storage/redis/silence.js';
import { overrideKeys } from '../../storage/stores/redis/keys.js';
import { fieldOf, VALUE_FIELDS } from './override-address.js';
import { type Known, OverrideReplica } from './override-replica.js';
import {
  MAX_CHANGES,
  type OverrideChange,
  type OverrideStore,
  type OverrideUpdate,
  type StoredChange,
} from './override-store.js';
import { OVERRIDES_SCRIPT } from './overrides-script.generated.js';
import {
  readChange,
  readChanged,
  readJoinedPage,
  readPage,
  readState,
  type RecordPage,
  SEPARATOR,
  type StoreState,
} from './overrides-reply.js';

/** The time between reads if no message reports a change. */
const READ_EVERY_MS = 30_000;
/** The time between reads while messages can't arrive. */
const POLL_EVERY_MS = 2000;
/** The time until a failed first read is repeated, while the app starts. */
const FIRST_RETRY_AFTER_MS = 20;
/** The time until the next read after a failure. */
const RETRY_AFTER_MS = 1000;
/** The maximum number of times that all records are read again because more of them changed in the meantime than the history covers. */
const MAX_LOADS = 5;
/**
 * A message without a change. An instance sends it once it listens, to find out if its Redis user may publish. All instances use the same
 * text.
 */
const PROBE = 'probe';

/**
 * Stores overrides on Redis. Each instance has a copy of all of them. It reads them once, page by page. After that, each change arrives on
 * the channel; missed changes are read from the history.
 */
export class RedisOverrideStore implements OverrideStore {
  private readonly script: Script;
  private readonly keys: string[];
  private readonly timeoutMs: number;
  private readonly listener: ChannelListener;
  private readonly replica = new OverrideReplica((update) => this.onUpdate(update));
  private timer: NodeJS.Timeout | undefined;
  private onUpdate: (update: OverrideUpdate) => void = () => undefined;
  /** The read in progress, and the next one. */
  private reading: Promise<void> | undefined;
  private next: Promise<void> | undefined;
  private warned = false;
  /** True from the moment when the listener lost its connection or was rejected until it listens again. */
  private isDeaf = false;
  /** True if Redis rejects publishing, so that other instances aren't notified of changes. */
  private isUnpublished = false;
  private warnedOfChannel = false;
  /** True while the next read is later than a poll would be. */
  private isWaitingLong = false;
  private closed = false;

  constructor(
    private readonly client: Connection,
    { prefix, timeoutMs }: Pick<RateLimitSettings, 'prefix' | 'timeoutMs'>,
  ) {
    this.script = new Script(client, OVERRIDES_SCRIPT);
    this.keys = overrideKeys(prefix, client.options.keyPrefix);
    this.timeoutMs = timeoutMs;
    this.listener = new ChannelListener(client, this.keys[0]!, this.hear, this.deafen, this.warnOfChannel);
  }

  subscribe(onUpdate: (update: OverrideUpdate) => void): void {
    this.onUpdate = onUpdate;
  }

  /** Never rejects: an app also starts without Redis, with its configured rates. */
  async watch(): Promise<void> {
    const since = performance.now();
    const connected = await connect(this.client).then(
      () => true,
      () => false,
    );
    if (this.closed) return;
    this.client.on('ready', this.refresh);
    const end = since + CONNECT_TIMEOUT_MS;
    const first = Promise.all([this.readFirst(connected ? end : -Infinity), this.listener.start()]);
    // Without a connection, timers and the listener retry later.
    if (!connected) return;
    await withDeadline(first, end - performance.now()).catch(() => undefined);
  }

  /** One read serves all callers that wait for it to start. */
  read(): Promise<void> {
    if (this.reading === undefined) {
      this.reading = this.catchUp().finally(() => (this.reading = undefined));
      return this.reading;
    }
    this.next ??= this.reading
      .catch(() => undefined)
      .then(() => {
        this.next = undefined;
        return this.read();
      });
    return this.next;
  }

  async write({ operation, items, by, reason, lastVersion, rollbackTo }: OverrideChange): Promise<number | undefined> {
    const args = items.flatMap((item) => {
      const { kind, limit, key, value, inherit, ends, quota, previousQuota } = item;
      const place = kind === 'rate' && key === '' ? ['1', limit] : ['2', fieldOf(item)];
      const numbers = [ends, quota, previousQuota].map(String);
      return [...place, members({ kind, limit, key }).slice(1), VALUE_FIELDS[kind], value, inherit, ...numbers];
    });
    const head = [this.keys[0]!, members({ by, reason }), MAX_CHANGES, lastVersion ?? '', members({ rollbackTo })];
    const { done, now, version, change } = await this.call(readChanged, operation, ...head.map(String), ...args);
    if (change !== undefined && !this.replica.hear(change, now)) await this.read();
    // After this read, the change that another instance made instead is known here.
    if (!done) await this.read();
    return done ? version : undefined;
  }

  async changes(most: number): Promise<StoredChange[]> {
    const client = this.ready();
    try {
      const list = await withDeadline(client.lrange(this.keys[3]!, -most, -1), this.timeoutMs);
      return list.flatMap((json) => readChange(json) ?? []);
    } catch (error) {
      throw this.failure(error);
    }
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.client.off('ready', this.refresh);
    this.listener.close();
  }

  private readonly refresh = (): void => void this.update();

  /** Applies a change immediately if it follows the last known one; otherwise reads the missed ones. */
  private readonly hear = (message?: string): void => {
    if (this.closed || message === PROBE) return;
    if (message === undefined) {
      this.isDeaf = false;
      void this.probe();
    }
    const change = message === undefined ? undefined : readChange(message);
    if (change === undefined || !this.replica.hear(change, Math.floor(change.at / 1000))) this.refresh();
  };

  /** Called when messages can no longer arrive. */
  private readonly deafen = (): void => {
    this.isDeaf = true;
    this.pollSoon();
  };

  private pollSoon(): void {
    if (this.isWaitingLong) this.readIn(POLL_EVERY_MS);
  }

  private readonly warnOfChannel = (reason: string): void => {
    if (this.warnedOfChannel || this.closed) return;
    this.warnedOfChannel = true;
    logger.warn(messages.overridesNotWatched(this.keys[0]!, reason));
  };

  /** Publishes an empty message to find out if changes can be published. */
  private async probe(): Promise<void> {
    if (this.client.status !== 'ready') return;
    try {
      await this.client.publish(this.keys[0]!, PROBE);
      this.isUnpublished = false;
    } catch (error) {
      if (!isErrorReply(error)) return;
      this.isUnpublished = true;
      this.warnOfChannel(error.message);
      this.pollSoon();
    }
  }

  /** Reads the store now and schedules the next read with the one timer. Resolves to `true` if a read soon after may succeed. */
  private async update(): Promise<boolean> {
    let nextMs: number | undefined;
    let mayRecover = false;
    try {
      await this.read();
      this.warned = false;
    } catch (error) {
      nextMs = RETRY_AFTER_MS;
      const reason = error instanceof RateLimitStoreError ? error.cause : error;
      mayRecover = !isErrorReply(reason);
      this.warn(reason);
    }
    this.readIn(nextMs ?? (this.isDeaf || this.isUnpublished ? POLL_EVERY_MS : READ_EVERY_MS));
    return mayRecover;
  }

  /** Reads until it succeeds or the time is up: the nodes of a Cluster that has just connected may still close connections. */
  private async readFirst(end: number): Promise<void> {
    while ((await this.update()) && !this.closed && performance.now() < end) await sleep(FIRST_RETRY_AFTER_MS);
  }

  private readIn(ms: number): void {
    clearTimeout(this.timer);
    this.isWaitingLong = ms > POLL_EVERY_MS;
    if (!this.closed) this.timer = setTimeout(this.refresh, ms).unref();
  }

  /** Reads the changes since the last known one, or all records if that was too long ago. */
  private async catchUp(): Promise<void> {
    let state: StoreState;
    let result: 'done' | 'again' | 'load';
    do {
      const { known } = this.replica;
      state = await this.state(known);
      if (this.closed) return;
      result = this.replica.follow(state, known);
    } while (result === 'again');
    if (result === 'done') return;
    for (let load = 0; load < MAX_LOADS; load++) {
      if (load > 0) state = await this.state(undefined);
      if (await this.loadAll(state)) return;
    }
  }

  /** Reads all records. Resolves to true if the history covers all changes in the meantime. */
  private async loadAll(state: StoreState): Promise<boolean> {
    const loading = this.replica.load(state);
    if (state.version === 0) return loading.finish(state);
    let next: Promise<RecordPage> | undefined = this.page('0');
    while (next !== undefined && !this.closed) {
      const page: RecordPage = await next;
      next = page.cursor === '0' ? undefined : this.page(page.cursor);
      // The server scans the next page at the same time.
      loading.add(page);
    }
    return this.closed || loading.finish(await this.state(loading.known));
  }

  private page(cursor: string): Promise<RecordPage> {
    const page = this.call(readJoinedPage, 'page', cursor, SEPARATOR).then(
      (joined) => joined ?? this.call(readPage, 'page', cursor),
    );
    // If the store is closed in the meantime, nothing awaits the page.
    page.catch(() => undefined);
    return page;
  }

  private state(known: Known | undefined): Promise<StoreState> {
    return this.call(readState, 'read', String(known?.version ?? -1), String(known?.at ?? 0));
  }

  /** Warns about an error reply, once until the next successful read. Checks already report failing connections. */
  private warn(reason: unknown): void {
    if (this.warned || this.closed || !isErrorReply(reason)) return;
    this.warned = true;
    logger.warn(messages.overridesUnreadable(reason.message));
  }

  private failure(error: unknown): RateLimitStoreError {
    if (error instanceof RateLimitStoreError) noteSilence(this.client);
    return asStoreError(error, serverOf(this.client));
  }

  private ready(): Connection {
    if (this.client.status !== 'ready') throw notConnected(this.client);
    return this.client;
  }

  private async call<T>(read: (reply: unknown) => T, ...args: string[]): Promise<T> {
    this.ready();
    try {
      return read(await withDeadline(this.script.run(this.keys, args, this.timeoutMs), this.timeoutMs));
    } catch (error) {
      throw this.failure(error);
    }
  }
}

/** Members of a JSON object, each followed by a comma. */
function members(fields: object): string {
  const json = JSON.stringify(fields).slice(1, -1);
  return json === '' ? '' : `,${json}`;
}
