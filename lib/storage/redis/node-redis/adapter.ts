import { EventEmitter } from 'node:events';
import { forgetError, notConnected, rememberError } from '../connection-errors.js';
import type { Command, Connection, EventListener, Pipeline } from '../connection.js';
import { UnsentCommands } from './unsent-commands.js';

/** The first bytes of RESP3 types whose replies differ from those of RESP2, and from one type mapping of an app to another. */
const MAP = '%'.charCodeAt(0);
const DOUBLE = ','.charCodeAt(0);

/** The type mapping of our commands, whatever that of the app: maps as lists of names and values, scores as text. */
const TYPE_MAPPING = { [MAP]: Array, [DOUBLE]: String } as const;

/** Reads a reply as ioredis does: RESP3 puts each member of a sorted set in a list with its score. */
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

/** Where the key of a command of the console is; -1 if it has none. */
function keyIndexOf([name]: Command): number {
  switch (name) {
    case 'time':
    case 'info':
    case 'dbsize':
    case 'randomkey':
      return -1;
    case 'memory':
      return 2;
    default:
      return 1;
  }
}

/** The part of an event emitter that is used. */
export interface Emitter {
  on(event: string, listener: EventListener): unknown;
  off(event: string, listener: EventListener): unknown;
}

/** Our event of the same meaning for an event of node-redis, and its arguments. */
export type Bridge = readonly [event: string, listener: EventListener];

/** The options of each of our commands. They replace those that the app has set for its own. */
export interface CommandOptions {
  readonly typeMapping: object;
  /** Checks have a deadline of their own: a timer for each command costs more than all else of it. */
  readonly timeout: undefined;
  readonly abortSignal: UnsentCommands;
  readonly asap: undefined;
}

/**
 * A client of node-redis, used as if it were a connection of ioredis. Nothing waits for a connection: a command fails at once
 * while it is down.
 */
export abstract class NodeRedisAdapter {
  private readonly events = new EventEmitter();
  /** Listeners at the client, from our first listener to our last. */
  private attached: (() => void) | undefined;
  private readonly unsent = new UnsentCommands();
  protected readonly commandOptions: CommandOptions = {
    typeMapping: TYPE_MAPPING,
    timeout: undefined,
    abortSignal: this.unsent,
    asap: undefined,
  };

  constructor(protected readonly keyPrefix: string | undefined) {
    this.events.setMaxListeners(0);
  }

  abstract get status(): string;
  /** What emits the events of the client, and what they mean. */
  protected abstract emitters(): readonly (readonly [Emitter, readonly Bridge[]])[];
  /** A client of our own, for `connect`. Whoever makes it ends it. */
  abstract copy(): Connection;
  /** Sends a command whose first key decides which node gets it. */
  protected abstract sendTo(key: string | undefined, args: string[]): Promise<unknown>;

  /** Takes back commands that node-redis has not sent, after one was not answered in time. */
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

  /** All are sent in one turn, and thus in one write; on a Cluster, to the node of the first key. */
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
    // An event `error` without a listener would throw.
    if (this.events.listenerCount(event) > 0) this.events.emit(event, ...args);
  }

  /** Why a command is not sent. */
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
    const bridges = this.emitters().flatMap(([emitter, each]) => each.map((bridge) => [emitter, bridge] as const));
    for (const [emitter, [event, listener]] of bridges) emitter.on(event, listener);
    return () => {
      for (const [emitter, [event, listener]] of bridges) emitter.off(event, listener);
    };
  }
}
