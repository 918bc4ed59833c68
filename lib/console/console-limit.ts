import { consoleMessages } from '../errors/messages/console.js';
import type { Limiter } from '../limiter/limiter.js';
import { OWN_LIMIT } from './limit-catalog.js';
import { ConsoleProblem } from './problem.js';

/** What one address may ask of the console of one instance: far more than a page does, and little enough to slow nothing down. */
export const CONSOLE_LIMIT = {
  name: OWN_LIMIT,
  key: 'ip',
  algo: 'gcra',
  rate: 50,
  interval: '1s',
  burst: 200,
  scope: 'instance',
} as const;

/** Limits that a look-up reads for the price of one request: each takes some 0.2 ms of the process. */
const LIMITS_A_UNIT = 5;

/** What look-ups take of the console's own limit, beyond the request: the more limits they read, the fewer there may be. */
export class LookupBudget {
  constructor(
    private readonly limiter: Limiter,
    private readonly limits: () => number,
  ) {}

  /** Rejects with a `ConsoleProblem` if somebody has looked up too much. */
  async take(client: string): Promise<void> {
    const units = Math.min(CONSOLE_LIMIT.burst - 1, Math.floor(this.limits() / LIMITS_A_UNIT));
    if (units === 0) return;
    const { allowed, retryAfterMs } = await this.limiter.consume(client, units);
    if (!allowed) throw tooMany(retryAfterMs);
  }
}

/** Somebody asked too much. */
export function tooMany(retryAfterMs: number): ConsoleProblem {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new ConsoleProblem(429, consoleMessages.tooMany(seconds), [], seconds);
}
