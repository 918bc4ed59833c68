import { MemoryStore } from '../../../lib/index.js';
import type { Check, Refund, ReserveEntry, StoreDecision } from '../../../lib/testing/store/index.js';

/**
 * Stands for the store that instances share, below their layers: it counts in process, on the process's clock, which tests move, and
 * remembers what it was asked.
 */
export class SharedStore extends MemoryStore {
  readonly checks: Check[] = [];
  readonly reserved: ReserveEntry[] = [];
  readonly refunds: Refund[] = [];
  closed = 0;
  /** What it says of where it decides. */
  source: (decision: StoreDecision) => StoreDecision['source'] = ({ source }) => source;
  /** What happens while a call is under way: if it throws, the call fails. */
  meanwhile: (check?: Check) => void | Promise<void> = () => undefined;

  constructor() {
    super({ clock: () => 1_790_000_000_000_000 + Math.round(performance.now() * 1000) });
  }

  override async check(checks: readonly Check[]): Promise<StoreDecision[][]> {
    this.checks.push(...checks);
    const answers = await super.check(checks);
    for (const check of checks) await this.meanwhile(check);
    return answers.map((decisions) => decisions.map((decision) => ({ ...decision, source: this.source(decision) })));
  }

  override reserve(entry: ReserveEntry) {
    this.reserved.push(entry);
    return super.reserve(entry);
  }

  override async refund(refunds: readonly Refund[]) {
    this.refunds.push(...refunds);
    await this.meanwhile();
    return super.refund(refunds);
  }

  override async block(...given: Parameters<MemoryStore['block']>) {
    await this.meanwhile();
    return super.block(...given);
  }

  override async reset(...given: Parameters<MemoryStore['reset']>) {
    await this.meanwhile();
    return super.reset(...given);
  }

  override async learn(...given: Parameters<MemoryStore['learn']>) {
    await this.meanwhile();
    return super.learn(...given);
  }

  override async credit(...given: Parameters<MemoryStore['credit']>) {
    await this.meanwhile();
    return super.credit(...given);
  }

  override close() {
    this.closed++;
    return super.close();
  }
}
