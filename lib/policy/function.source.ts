import type { PolicyFunction } from '../config/policy.js';
import { policyMessages } from '../errors/policy-messages.js';
import { reasonOf } from '../util/reason-of.js';
import { PlainValue } from './plain-value.js';
import type { PolicySource } from './policy-source.js';
import { Problems } from './problems.js';
import { type PolicyReading, readPolicy } from './read-policy.js';

/** A function, which is asked with a deadline. */
export class FunctionPolicySource implements PolicySource {
  readonly name = 'policy.source()';
  readonly everyMs = 30_000;
  private readonly closing = new AbortController();

  constructor(
    private readonly ask: PolicyFunction,
    private readonly timeoutMs: number,
  ) {}

  async read(): Promise<PolicyReading> {
    const { name } = this;
    const problems = new Problems();
    try {
      return readPolicy(name, new PlainValue(await this.answer(), name), problems);
    } catch (error) {
      problems.add({ name, path: '' }, policyMessages.failed(reasonOf(error)));
      return { problems: problems.list };
    }
  }

  look(): Promise<PolicyReading> {
    return this.read();
  }

  close(): void {
    this.closing.abort();
  }

  /** What the function gives, unless it takes too long. What it gives later is nobody's. */
  private async answer(): Promise<unknown> {
    const late = new AbortController();
    const reason = new Error(policyMessages.timedOut(this.timeoutMs));
    const timer = setTimeout(() => late.abort(reason), this.timeoutMs);
    const signal = AbortSignal.any([late.signal, this.closing.signal]);
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      return await Promise.race([this.ask(signal), aborted]);
    } finally {
      clearTimeout(timer);
    }
  }
}
