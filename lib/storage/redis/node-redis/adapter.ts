import { EventEmitter } from 'node:events';
import { forgetError, notConnected, rememberError } from '../errors.js';
import type { Command, Connection, EventListener, Pipeline } from '../connection.js';

/** The first bytes of RESP3 types whose replies differ from RESP2, and between type mappings of apps. */
const MAP = '%'.charCodeAt(0);
const DOUBLE = ','.charCodeAt(0);

/** The type mapping of the library's commands, regardless of the app's: maps as lists of names and values, scores as text. */
const TYPE_MAPPING = { [MAP]: Array, [DOUBLE]: String } as const;

/** Converts a reply to the form of ioredis. RESP3 puts each member of a sorted set in a list with its score. */
function replyOf([name, ...args]: Command, reply: unknown): unknown {
  if (!Array.isArray(reply)) return reply;
  if (name === 'hgetall') return recordOf(reply);
  return args.at(-1) === 'WITHSCORES' ? reply.flat() : reply;
}

function recordOf(namesAndValues: readonly unknown[]): Record<string, unknown> {
  const record: Record<string, unknown> = {};
  for (let i = 0; i < namesAndValues.length; i += 2) record[String(namesAndValues[i])] = namesAndValues[i + 1];
  return record;
}

/** The commands of the console without a key. */
const KEYLESS: readonly unknown[] = ['time', 'info', 'dbsize', 'randomkey'];

/** The index of the key in a command of the console; -1 if it has none. */
function keyIndexOf([name]: Command): number {
  if (KEYLESS.includes(name)) return -1;
  return name === 'memory' ? 2 : 1;
}

/** The part of an event emitter that the library uses. */
export interface Emitter {
  on(event: string, listener: EventListener): unknown;
  off(event: string, listener: EventListener): unknown;
}

/** The event of the library that corresponds to an event of node-redis, and a listener that converts its arguments. */
export type Bridge = readonly [event: string, listener: EventListener];

/**
 * A client of node-redis with the interface of an ioredis connection. Commands never wait for a connection: they fail immediately while it
 * is down.
 */
export abstract class NodeRedisAdapter {
  private readonly events = new EventEmitter();
  /** Removes the listeners on the client. They are attached while this adapter has listeners. */
  private attached: (() => void) | undefined;
  private readonly unsent = new UnsentCommands();
  /** The options of the library's commands. They replace those that the app has set for its own. */
  protected readonly commandOptions = {
    typeMapping: TYPE_MAPPING,
    // Checks have a deadline of their own. A timer per command would cost more than the rest of the command.
    timeout: undefined,
    abortSignal: this.unsent,
    asap: undefined,
  };

  constructor(protected readonly keyPrefix: string | undefined) {
    this.events.setMaxListeners(0);
  }

  abstract get status(): string;
  /** The emitter of the client's events, if there is one, and the corresponding events here. */
  protected abstract get emitter(): Emitter | undefined;
  protected abstract readonly bridges: readonly Bridge[];
  /** A separate client for `connect`. The caller ends it. */
  abstract copy(): Connection;
  /** Sends a command to the node of its first key. */
  protected abstract sendTo(key: string | undefined, args: string[]): Promise<unknown>;

  /** Removes commands that node-redis has not sent, after one was not answered in time. */
  abandonUnsent(): void {
    this.unsent.abandon();
  }

  /** Keeps errors of the client from ending the process; checks report them. Returns a function that stops this. */
  ignoreErrors(): () => void {
    const remember = (error: Error) => rememberError(this, error);
    const forget = () => forgetError(this);
    this.on('error', remember);
    this.on('ready', forget);
    return () => {
      this.off('error', remember);
      this.off('ready', forget);
    };
  }

  evalsha(sha: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown> {
    return this.runScript('EVALSHA', sha, keyCount, keysAndArguments);
  }

  eval(source: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown> {
    return this.runScript('EVAL', source, keyCount, keysAndArguments);
  }

  del(...keys: string[]): Promise<unknown> {
    const prefixed = this.prefixed(keys, keys.length);
    return this.sendTo(prefixed[0], ['DEL', ...prefixed]);
  }

  publish(channel: string, message: string): Promise<unknown> {
    return this.sendTo(undefined, ['PUBLISH', channel, message]);
  }

  lrange(key: string, first: number, last: number): Promise<string[]> {
    return this.read('LRANGE', key, first, last) as Promise<string[]>;
  }

  zrangebyscore(
    key: string,
    least: number | string,
    most: number | string,
    ...page: (number | string)[]
  ): Promise<string[]> {
    return this.read('ZRANGEBYSCORE', key, least, most, ...page) as Promise<string[]>;
  }

  zscore(key: string, member: string): Promise<string | null> {
    return this.read('ZSCORE', key, member) as Promise<string | null>;
  }

  zcount(key: string, least: number | string, most: number | string): Promise<number> {
    return this.read('ZCOUNT', key, least, most) as Promise<number>;
  }

  /** All commands are sent in one turn, and so in one write. On a Cluster, they go to the node of the first key. */
  pipeline(commands: Command[]): Pipeline {
    const keyed = commands.find((command) => keyIndexOf(command) > 0);
    const key = keyed && this.keyOf(String(keyed[keyIndexOf(keyed)]));
    const send = (command: Command): Promise<[Error | null, unknown]> => {
      const args = command.map(String);
      const at = keyIndexOf(command);
      if (at > 0) args[at] = this.keyOf(args[at]!);
      return this.sendTo(key, args).then(
        (reply) => [null, replyOf(command, reply)],
        (error: Error) => [error, undefined],
      );
    };
    return { exec: () => Promise.all(commands.map(send)) };
  }

  on(event: string, listener: EventListener): this {
    this.attached ??= this.attach();
    this.events.on(event, listener);
    return this;
  }

  once(event: string, listener: EventListener): this {
    const once: EventListener = (...args) => {
      this.off(event, once);
      listener(...args);
    };
    return this.on(event, once);
  }

  off(event: string, listener: EventListener): this {
    this.events.off(event, listener);
    if (this.events.eventNames().length === 0) {
      this.attached?.();
      this.attached = undefined;
    }
    return this;
  }

  protected emit(event: string, ...args: unknown[]): void {
    // An `error` event without a listener would throw.
    if (this.events.listenerCount(event) > 0) this.events.emit(event, ...args);
  }

  /** The rejection of a command that is not sent. */
  protected notReady(): Promise<never> {
    return Promise.reject(notConnected(this));
  }

  protected keyOf(key: string): string {
    return this.keyPrefix === undefined ? key : this.keyPrefix + key;
  }

  private runScript(name: string, script: string, keyCount: number, keysAndArguments: string[]): Promise<unknown> {
    const key = keyCount > 0 ? this.keyOf(keysAndArguments[0]!) : undefined;
    return this.sendTo(key, [name, script, String(keyCount), ...this.prefixed(keysAndArguments, keyCount)]);
  }

  private prefixed(keysAndArguments: string[], keyCount: number): string[] {
    if (this.keyPrefix === undefined) return keysAndArguments;
    return keysAndArguments.map((each, index) => (index < keyCount ? this.keyOf(each) : each));
  }

  private read(name: string, key: string, ...args: (string | number)[]): Promise<unknown> {
    const own = this.keyOf(key);
    return this.sendTo(own, [name, own, ...args.map(String)]);
  }

  private attach(): () => void {
    const { emitter, bridges } = this;
    for (const [event, listener] of bridges) emitter?.on(event, listener);
    return () => {
      for (const [event, listener] of bridges) emitter?.off(event, listener);
    };
  }
}

type Listener = () => void;

/**
 * The commands that node-redis holds and has not sent yet. While a connection is down or its server reads nothing, they would wait, and a
 * check would be charged long after its caller gave up. It serves as the `AbortSignal` of all commands of a connection: node-redis adds a
 * listener for each command, and removes it as soon as the command is sent.
 */
export class UnsentCommands {
  /** Later commands are sent as usual. */
  readonly aborted = false;
  private readonly listeners = new Set<Listener>();

  addEventListener(_type: string, listener: Listener): void {
    this.listeners.add(listener);
  }

  removeEventListener(_type: string, listener: Listener): void {
    this.listeners.delete(listener);
  }

  /** Removes the commands that are held now and that node-redis doesn't send in its turn. */
  abandon(): void {
    if (this.listeners.size === 0) return;
    const held = [...this.listeners];
    const abandon = () => {
      for (const listener of held) if (this.listeners.delete(listener)) listener();
    };
    setImmediate(() => setImmediate(abandon));
  }
}
