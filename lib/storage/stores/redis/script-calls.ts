import { RateLimitStoreError } from '../../../engine/errors/errors.js';
import { CONNECT_TIMEOUT_MS } from '../../redis/client.js';
import type { Connection } from '../../redis/connection.js';
import { asStoreError, notConnected, serverOf } from '../../redis/errors.js';
import { NodeRedisAdapter } from '../../redis/node-redis/adapter.js';
import { withDeadline } from '../../redis/deadline.js';
import { noteSilence } from '../../redis/silence.js';
import { Script } from '../../redis/script.js';
import { Program, type TestClock } from './program.js';

/** Only loaded by apps with Redis. */
const decisionScript = async () => (await import('./script.generated.js')).decisionScript();

/** Calls of the script, each with a deadline, and the known offset of the server's clock. */
export class ScriptCalls {
  protected readonly script: Script;
  /** How far the server's clock is ahead of this process's, in microseconds, as precisely as calendar windows require. */
  private clockOffset = 0;

  constructor(
    protected readonly client: Connection,
    private readonly prefix: string,
    readonly timeoutMs: number,
    private readonly clock: TestClock | undefined,
    script: string | (() => Promise<string>) = decisionScript,
  ) {
    this.script = new Script(client, script);
  }

  /** Loads the script, until `CONNECT_TIMEOUT_MS` after `since`. */
  async load(since: number): Promise<void> {
    try {
      await withDeadline(this.script.load(), since + CONNECT_TIMEOUT_MS - performance.now(), CONNECT_TIMEOUT_MS);
    } catch (error) {
      throw this.failure(error);
    }
  }

  /** The error of a call, on a node of a Cluster or on the one server. */
  failure(error: unknown, node = serverOf(this.client)): RateLimitStoreError {
    return asStoreError(error, node);
  }

  program(): Program {
    return new Program(this.prefix, this.now(), this.clock);
  }

  /** The best guess of the server's time, in microseconds. */
  now(): number {
    return this.clock?.now() ?? Date.now() * 1000 + this.clockOffset;
  }

  /** Requests the server's time, in microseconds. */
  async time(): Promise<number> {
    if (this.clock !== undefined) return this.clock.now();
    const [[error, reply] = []] = (await this.client.pipeline([['time']]).exec())!;
    if (error) throw error;
    const [seconds, micros] = (reply as unknown[]).map(Number);
    return seconds! * 1e6 + micros!;
  }

  /**
   * Runs a program on the given node of a Cluster, by default through the client. Throws if Redis isn't connected; the caller waits no
   * longer than `timeoutMs`.
   */
  run(program: Pick<Program, 'keys' | 'args'>, node?: string): Promise<unknown> {
    this.assertReady();
    return this.script.run(program.keys, program.args(), this.timeoutMs, node);
  }

  /** The reason why calls on a slot of a Cluster may have just failed while its node answers others. */
  whyMoving(slot: number): string | undefined {
    return this.script.whyMoving(slot, 2 * this.timeoutMs);
  }

  /** Deletes keys of one slot. Resolves to the number of keys that existed. */
  delete(keys: readonly string[], node: string | undefined): Promise<number> {
    return this.guarded(() => this.script.delete(keys, node));
  }

  /** Sends the calls made during `send` in one write per node of a Cluster. */
  inOneWrite(send: () => void): void {
    this.script.inOneWrite(send);
  }

  /** True if the client writes the commands of one turn in the next one. */
  get sendsNextTurn(): boolean {
    return this.client instanceof NodeRedisAdapter;
  }

  /** Records that a call was not answered in time. */
  noteSilence(): void {
    noteSilence(this.client);
  }

  /** Records the server's time, in microseconds. */
  setClock(serverTime: number): void {
    this.clockOffset = serverTime - Date.now() * 1000;
  }

  /** Calls Redis only if it is connected, and waits no longer than the deadline. */
  async guarded<T>(call: () => Promise<T>): Promise<T> {
    this.assertReady();
    try {
      return await withDeadline(call(), this.timeoutMs);
    } catch (error) {
      if (error instanceof RateLimitStoreError) this.noteSilence();
      throw this.failure(error);
    }
  }

  private assertReady(): void {
    if (this.client.status !== 'ready') throw notConnected(this.client);
  }
}
