import type { PolicyFunction } from '../config/policy.js';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { PlainValue } from './plain-value.js';
import type { PolicySource } from './policy-source.js';
import { Problems } from './problems.js';
import { type PolicyReading, readPolicyInSlices } from './read-policy.js';

/** A function that returns a policy, called with a deadline. */
export class FunctionPolicySource implements PolicySource {
  readonly name = 'policy.source()';
  readonly everyMs = 30_000;
  /** Aborts the current call. */
  private asking: AbortController | undefined;

  constructor(
    private readonly ask: PolicyFunction,
    private readonly timeoutMs: number,
  ) {}

  async read(): Promise<PolicyReading> {
    const { name } = this;
    const problems = new Problems();
    try {
      return await readPolicyInSlices(name, new PlainValue(await this.answer(), name), problems);
    } catch (error) {
      problems.add({ name, path: '' }, policyMessages.failed(reasonOf(error)));
      return { problems: problems.list };
    }
  }

  look(): Promise<PolicyReading> {
    return this.read();
  }

  close(): void {
    this.asking?.abort();
  }

  /** The result of the function, unless it takes too long. Later results are ignored. */
  private async answer(): Promise<unknown> {
    const asking = new AbortController();
    this.asking = asking;
    const reason = new Error(policyMessages.timedOut(this.timeoutMs));
    const timer = setTimeout(() => asking.abort(reason), this.timeoutMs);
    const { signal } = asking;
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      return await Promise.race([this.ask(signal), aborted]);
    } finally {
      clearTimeout(timer);
      // If the function threw synchronously, the rejection by an abort would be unhandled.
      this.asking = undefined;
    }
  }
}
