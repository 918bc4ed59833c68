import type { LimitDefinition } from '../../app/config/limit-definition.js';
import { RateLimitExceededException } from '../../app/http/rate-limit-exceeded.exception.js';
import type { LeasedDecision } from '../../app/limiter/lease.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import type { Declaration } from '../../app/rules/declaration.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { askMessages } from '../../engine/errors/messages/calls.js';
import { isCost } from '../../engine/limits/arguments.js';
import { LongTimeout } from '../../engine/util/long-timeout.js';
import type { LimitedSettings } from './read-limited-options.js';

/** The key of a counter for all calls, as limits with `key: 'global'` have it. */
export const ALL_CALLS = 'global';

/** Metadata of a limited method: its uses of `@Limited`, the uppermost first. Another copy of the package may have written it. */
export const LIMITED_METHOD = 'nestjs-sluice:limited-method';

/** One use of `@Limited`. */
export class LimitedMethodSite {
  constructor(
    /** Where it is, for messages. */
    readonly location: string,
    readonly className: string,
    readonly method: string,
    readonly limit: string | LimitDefinition,
    readonly settings: LimitedSettings,
  ) {}

  /** True if its limit has a name, and so one counter for all that use it. */
  get isNamed(): boolean {
    return typeof this.limit === 'string' || this.limit.name !== undefined;
  }

  /** Where its limit is declared. An unnamed limit counts per method. */
  get declaration(): Declaration {
    const { location, className, method } = this;
    return { location, namespace: this.isNamed ? '' : `method ${className}.${method}` };
  }

  /** Runs a method with units of its limit. Until the first `await`, calls are in the order in which they were made. */
  async run(limiter: Limiter, args: unknown[], method: () => unknown): Promise<unknown> {
    const decision = await this.take(limiter, args);
    if (!decision.allowed) {
      if (this.settings.onLimit === 'skip') return undefined;
      const { delayMs, levels = [decision] } = decision;
      throw new RateLimitExceededException({ allowed: false, decisions: levels, tightest: decision, delayMs });
    }
    const lease = decision.lease?.keepAlive();
    try {
      const { delayMs } = decision;
      if (delayMs > 0) await new Promise<void>((resolve) => void new LongTimeout(delayMs, resolve));
      return await method();
    } finally {
      await lease?.release();
    }
  }

  private take(limiter: Limiter, args: unknown[]): Promise<LeasedDecision> {
    const { onLimit, timeout, signal } = this.settings;
    const key = this.keyOf(limiter, args);
    const cost = this.costOf(limiter, args);
    if (onLimit !== 'wait') return limiter.consume(key, cost);
    return limiter.acquire(key, { cost, timeout, signal: signal?.(...args) });
  }

  private keyOf({ name }: Limiter, args: unknown[]): string {
    const { key } = this.settings;
    if (key === undefined) return ALL_CALLS;
    const found: unknown = key(...args);
    if (typeof found === 'string' && found !== '') return found;
    throw new RateLimitArgumentError(askMessages.wrongKeyOf(this.location, name, found), {
      code: 'SLUICE_INVALID_RESULT',
    });
  }

  private costOf({ name }: Limiter, args: unknown[]): number | undefined {
    const { cost } = this.settings;
    if (typeof cost !== 'function') return cost;
    const found: unknown = cost(...args);
    if (isCost(found)) return found;
    throw new RateLimitArgumentError(askMessages.wrongCostOf(this.location, name, found), {
      code: 'SLUICE_INVALID_RESULT',
    });
  }
}
