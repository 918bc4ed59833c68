import { isErrorReply, messageOf } from './errors.js';
import { createHash } from 'node:crypto';
import { logger } from '../../engine/errors/logger.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { isCluster, mastersOf } from './client.js';
import type { Connection, Server } from './connection.js';
import { NodeConnections, type SlotCall } from './node-connections.js';

/** After a server forgot the script, at most this many runs are sent with the script before its hash is tried again. */
const MOST_RUNS_BY_EVAL = 1000;
/** The number of runs by hash after which a server counts as one that keeps the script. */
const SETTLED = 100;

/** The way in which one server gets a script. */
export class ScriptWay {
  /** A load that is on its way. */
  loading: Promise<void> | undefined;
  /**
   * The reason why loading is useless: the server rejected it, or forgot the script immediately. EVAL contains the script, and usually
   * caches it.
   */
  refusal: Error | undefined;
  /** The number of the last load or EVAL that the server answered; 0 if there was none. */
  givenAt = 0;
  private forgottenAt = 0;
  private runsByEval = 0;
  private left = 0;
  private byHash = 0;

  /** Returns true if the next run is sent with the script right away. */
  skipsHash(): boolean {
    if (this.left > 0) {
      this.left--;
      return true;
    }
    this.byHash++;
    return false;
  }

  /** Called if the server no longer knows the script that it got. Its hash is tried again later, after longer and longer intervals. */
  forgot(): void {
    if (this.forgottenAt === this.givenAt) return;
    this.forgottenAt = this.givenAt;
    if (this.byHash > SETTLED) this.runsByEval = 0;
    this.byHash = 0;
    this.runsByEval = Math.min(MOST_RUNS_BY_EVAL, 2 * this.runsByEval + 1);
    this.left = this.runsByEval;
  }

  /** Called if the server doesn't run scripts by their hash. */
  refusedHash(): void {
    this.left = MOST_RUNS_BY_EVAL;
  }
}

/** True if a server doesn't know the hash of a script, and so has run nothing. */
export function isNoScript(error: unknown): error is Error {
  return /^(?:ERR )?NOSCRIPT\b/.test(messageOf(error));
}

/** True if a server refused the command itself, and so has run nothing: its user may not send it, or the command doesn't exist. */
export function isRefused(error: unknown, command: 'evalsha' | 'eval'): boolean {
  const refusal = new RegExp(`^(?:NOPERM .*'${command}'|ERR unknown command ['"\`]?${command}\\b)`, 'i');
  const unsupported = new RegExp(
    `^ERR [^:]*\\b${command}\\b[^:]*\\b(?:not (?:allowed|supported|permitted)|disabled)`,
    'i',
  );
  const message = messageOf(error);
  return refusal.test(message) || unsupported.test(message);
}

/** Errors about the server or the user, which any command may get. */
const OF_ANY_COMMAND =
  /^(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOAUTH|NOREPLICAS|OOM|READONLY|TRYAGAIN|WRONGPASS) /;

/** True if a server's reply to `SCRIPT LOAD` means that it doesn't load scripts. */
export function isLoadRefused(error: unknown): error is Error {
  return isErrorReply(error) && !OF_ANY_COMMAND.test(error.message);
}

interface ScriptText {
  readonly source: string;
  readonly sha: string;
}

/** The error of a run whose script is not loaded in this process, so that nothing was sent. */
const NOT_LOADED = new Error('the text of the script is not loaded');

/** The hashes of the scripts of this process. Hashing a long script takes a while, and each store needs its hash. */
const hashes = new Map<string, string>();

function textOf(source: string): ScriptText {
  let sha = hashes.get(source);
  if (sha === undefined) hashes.set(source, (sha = createHash('sha1').update(source).digest('hex')));
  return { source, sha };
}

/** The connections whose servers don't load scripts. Each is logged once. */
const reported = new WeakSet<object>();

/** One run of the script. It is sent again only if a server reports that it has not run it. */
interface Run {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** When its caller gives up, on the process's clock. */
  readonly deadline: number;
  /** The number of the last load or EVAL when it was sent. */
  sentAt: number;
  /** The server that did not know the hash. */
  missing?: Connection;
  /** True if it is sent with the script. */
  byEval: boolean;
  /** The error that made it so. */
  reason?: unknown;
}

/**
 * Runs a script by its hash. Loads it into a server that lacks it, once for all waiting runs. For a server that doesn't load scripts, or
 * forgets them, the script is sent with the run.
 */
export class Script {
  /** The text and its hash, once it is loaded. */
  private text: ScriptText | undefined;
  private readonly loading: Promise<ScriptText>;
  private readonly ways = new WeakMap<object, ScriptWay>();
  /** True if any run was sent with the script. */
  private hasDetours = false;
  /** The number of loads and EVALs that were answered. */
  private given = 0;
  private readonly nodes: NodeConnections | undefined;

  constructor(
    private readonly client: Connection,
    source: string | (() => Promise<string>),
  ) {
    if (typeof source === 'string') this.text = textOf(source);
    // It loads while the app starts: Node tries to load a file only once, and later there may be no free file descriptor.
    this.loading = this.loaded(source);
    this.loading.catch(() => undefined);
    this.nodes = isCluster(client) ? new NodeConnections(client) : undefined;
  }

  /**
   * Runs the script, directly on a node of a Cluster if its name is passed. If the script had to be loaded, or another node has the slot,
   * it isn't run after its deadline, since the caller has given up.
   */
  run(keys: readonly string[], args: readonly string[], timeoutMs: number, node?: string): Promise<unknown> {
    const at = (node === undefined ? undefined : this.nodes?.toWrite(node)) ?? this.client;
    const run = this.begin(keys, args, timeoutMs);
    return this.send(at, run).catch((error: unknown) => {
      const send = (server: Server) => this.send(server, run);
      const sendByClient = () => this.run(keys, args, run.deadline - performance.now());
      return this.recover(error, at, run, send, node === undefined ? undefined : sendByClient);
    });
  }

  /** Deletes keys of one slot, which a node of a Cluster serves. */
  async delete(keys: readonly string[], node: string | undefined): Promise<number> {
    return this.nodes === undefined ? Number(await this.client.del(...keys)) : this.nodes.delete(node ?? '', keys);
  }

  /** The reason why calls on a slot may fail: a node reported it as moving in the last `withinMs` milliseconds. */
  whyMoving(slot: number, withinMs: number): string | undefined {
    return this.nodes?.moving.reasonOf(slot, withinMs);
  }

  /**
   * Runs the script on the connection of one server, or of the server that has the slot by now. Calls back with each connection that it
   * uses.
   */
  async runOn(
    server: Server,
    keys: readonly string[],
    args: readonly string[],
    timeoutMs: number,
    onServer: (server: Server) => void,
  ): Promise<unknown> {
    const run = this.begin(keys, args, timeoutMs);
    const send = (node: Server) => {
      onServer(node);
      return this.send(node, run);
    };
    return send(server).catch((error: unknown) =>
      // The client's choice of the node is unknown.
      this.recover(error, server, run, send, (failure) => Promise.reject(failure)),
    );
  }

  /**
   * Loads the script into every master. Loaded scripts are not evicted, unlike those cached by EVAL. A server may reject that as long as it
   * runs scripts that are sent along.
   */
  async load(): Promise<void> {
    await Promise.all(
      mastersOf(this.client).map(async (server) => {
        const refusal = await this.loadInto(server);
        if (refusal === undefined) return;
        await server.eval('return 1', 0).catch((error: unknown) => {
          throw isRefused(error, 'eval') ? refusal : error;
        });
      }),
    );
  }

  /** Sends the runs of one turn in one write per node. The runs start before `send` returns. */
  inOneWrite(send: () => void): void {
    if (this.nodes === undefined) send();
    else this.nodes.inOneWrite(send);
  }

  private async loaded(source: string | (() => Promise<string>)): Promise<ScriptText> {
    return (this.text ??= textOf(typeof source === 'string' ? source : await source()));
  }

  private begin(keys: readonly string[], args: readonly string[], timeoutMs: number): Run {
    return { keys, args, deadline: performance.now() + timeoutMs, sentAt: this.given, byEval: false };
  }

  private send(at: Connection, run: Run): Promise<unknown> {
    const { text } = this;
    // It is sent again, if there is time left, once the text is loaded.
    if (text === undefined) return Promise.reject(NOT_LOADED);
    const { keys, args } = run;
    if (this.hasDetours && !run.byEval && this.wayOf(at).skipsHash()) run.byEval = true;
    if (!run.byEval) return at.evalsha(text.sha, keys.length, ...keys, ...args);
    return at.eval(text.source, keys.length, ...keys, ...args).then((reply) => {
      this.wayOf(at).givenAt = ++this.given;
      return reply;
    });
  }

  /**
   * Handles the error of a run that was sent to `at`: loads the script there if it lacks it, and follows the slot of the keys to another
   * node. Without `sendByClient`, the client has already followed it. Rejects with the last error, or with the result of `whyRedirected`
   * if that finds a reason.
   */
  private async recover(
    error: unknown,
    at: Connection,
    run: Run,
    send: SlotCall['send'],
    sendByClient: ((failure: unknown) => Promise<unknown>) | undefined,
  ): Promise<unknown> {
    let failure: unknown;
    try {
      return await this.sendAgain(error, at, run);
    } catch (next) {
      failure = next;
    }
    const { keys, deadline } = run;
    const { nodes } = this;
    if (sendByClient === undefined || nodes?.isForClient(failure) !== true || performance.now() > deadline) {
      throw (await nodes?.whyRedirected(failure)) ?? failure;
    }
    return nodes.follow(failure, {
      keys,
      deadline,
      send,
      sendByClient: () => sendByClient(failure),
      mend: (next, server) => this.mend(next, server, run),
    });
  }

  /** Sends a run as long as a server reports that it lacks the script. Rejects with the last error. */
  private async sendAgain(error: unknown, at: Connection, run: Run): Promise<unknown> {
    let failure = error;
    while (await this.mend(failure, at, run)) {
      if (performance.now() > run.deadline) break;
      try {
        return await this.send(at, run);
      } catch (next) {
        failure = next;
      }
    }
    // The first error names the permission that the Redis user lacks.
    throw run.byEval && isRefused(failure, 'eval') ? (run.reason ?? failure) : failure;
  }

  /** Handles the error of a run that the server did not execute. Resolves to true to send it again. */
  private async mend(error: unknown, at: Connection, run: Run): Promise<boolean> {
    if (error === NOT_LOADED) {
      await this.loading;
      return true;
    }
    if (run.byEval) return false;
    if (isRefused(error, 'evalsha')) {
      this.wayOf(at).refusedHash();
      return this.sendAlong(at, run, error);
    }
    if (!isNoScript(error)) return false;
    const way = this.wayOf(at);
    const { sentAt } = run;
    const isSecond = run.missing === at;
    run.missing = at;
    run.sentAt = this.given;
    if (!isSecond && way.refusal === undefined) {
      if (way.givenAt <= sentAt) await this.loadInto(at);
      if (way.refusal === undefined) return true;
    }
    // It has forgotten a script that it got before the run was sent.
    if (isSecond || (way.givenAt > 0 && way.givenAt <= sentAt)) way.forgot();
    way.refusal ??= error;
    return this.sendAlong(at, run, way.refusal);
  }

  /** Sends a run again along with the script. */
  private sendAlong(at: Connection, run: Run, error: unknown): true {
    run.byEval = this.hasDetours = true;
    run.reason = error;
    if (!reported.has(this.client)) {
      reported.add(this.client);
      logger.log(redisMessages.sentByEval(reasonOf(error)));
    }
    return true;
  }

  /** Loads the script into a server, or into all masters of a Cluster. Resolves to the error if a server doesn't load scripts. */
  private async loadInto(at: Connection): Promise<Error | undefined> {
    const way = this.wayOf(at);
    const { source } = await this.loading;
    try {
      way.loading ??= (isCluster(at) ? this.loadIntoAll(mastersOf(at)) : at.script('LOAD', source))
        .then(() => void (way.givenAt = ++this.given))
        .finally(() => (way.loading = undefined));
      await way.loading;
      return undefined;
    } catch (error) {
      if (!isLoadRefused(error)) throw error;
      way.refusal = error;
      return error;
    }
  }

  private async loadIntoAll(servers: readonly Server[]): Promise<void> {
    const refusals = await Promise.all(servers.map((server) => this.loadInto(server)));
    const refusal = refusals.find((each) => each !== undefined);
    if (refusal !== undefined) throw refusal;
  }

  private wayOf(at: Connection): ScriptWay {
    let way = this.ways.get(at);
    if (way === undefined) this.ways.set(at, (way = new ScriptWay()));
    return way;
  }
}
