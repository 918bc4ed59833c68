import { consoleMessages } from '../engine/errors/messages/console.js';
import type { Limiter } from '../app/limiter/limiter.js';
import { OWN_LIMIT } from './limit-catalog.js';
import { ConsoleProblem } from './problem.js';

/** The limit of requests from one address to the console of one instance: enough for a page, and too few to do harm. */
export const CONSOLE_LIMIT = {
  name: OWN_LIMIT,
  key: 'ip',
  algo: 'gcra',
  rate: 50,
  interval: '1s',
  burst: 200,
  scope: 'instance',
} as const;

/** The number of limits that a lookup reads at the cost of one request: each takes about 0.2 ms of the process. */
const LIMITS_A_UNIT = 5;

/** Charges lookups to the console's own limit, in addition to the request: the more limits they read, the fewer are allowed. */
export class LookupBudget {
  constructor(
    private readonly limiter: Limiter,
    private readonly limits: () => number,
  ) {}

  /** Rejects with a `ConsoleProblem` if the client has made too many lookups. */
  async take(client: string): Promise<void> {
    const units = Math.min(CONSOLE_LIMIT.burst - 1, Math.floor(this.limits() / LIMITS_A_UNIT));
    if (units === 0) return;
    const { allowed, retryAfterMs } = await this.limiter.consume(client, units);
    if (!allowed) throw tooMany(retryAfterMs);
  }
}

/** The problem of a client that has sent too many requests. */
export function tooMany(retryAfterMs: number): ConsoleProblem {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new ConsoleProblem(429, consoleMessages.tooMany(seconds), [], seconds);
}
