import { moduleLogger } from '../engine/errors/logger.js';
import { messages } from '../engine/errors/messages/general.js';
import { RateLimitConfigError } from '../engine/errors/errors.js';

/** How long an app has to set up the module after its first `@RateLimit`: both happen while its files are loaded. */
const PATIENCE_MS = 10_000;

let timer: NodeJS.Timeout | undefined;
let isSetUp = false;

/** Warns if the module is not set up soon after limits were declared: without it, nothing reads them or could warn later. */
export function expectModule(): void {
  if (isSetUp || timer !== undefined) return;
  timer = setTimeout(() => {
    if (!isSetUp) moduleLogger.warn(messages.noModule());
  }, PATIENCE_MS).unref();
}

/** Notes that the module is set up. */
export function moduleIsSetUp(): void {
  isSetUp = true;
  clearTimeout(timer);
}

/** Refuses a guard or a middleware that code makes without what Nest would give it. Throws `RateLimitConfigError`. */
export function refuseByHand(type: 'RateLimitGuard' | 'RateLimitMiddleware', limiter: unknown): void {
  if (limiter === undefined) throw new RateLimitConfigError(messages.madeByHand(type), { code: 'SLUICE_NOT_INJECTED' });
}
