import { moduleLogger } from '../engine/errors/logger.js';
import { messages } from '../engine/errors/messages/general.js';
import { configError } from '../engine/errors/errors.js';

/** The time that an app has to set up the module after its first `@RateLimit`. Both happen while its files are loaded. */
const PATIENCE_MS = 10_000;

let timer: NodeJS.Timeout | undefined;
let isSetUp = false;

/** Warns if the module is not set up soon after limits were declared: without it, nothing would check them or could warn later. */
export function expectModule(): void {
  if (isSetUp || timer !== undefined) return;
  timer = setTimeout(() => {
    if (!isSetUp) moduleLogger.warn(messages.noModule());
  }, PATIENCE_MS).unref();
}

/** Called when the module is set up. */
export function moduleIsSetUp(): void {
  isSetUp = true;
  clearTimeout(timer);
}

/** Throws `RateLimitConfigError` for a guard or a middleware that code creates without the dependencies that Nest would inject. */
export function refuseByHand(type: 'RateLimitGuard' | 'RateLimitMiddleware', limiter: unknown): void {
  if (limiter === undefined) throw configError('SLUICE_NOT_INJECTED', messages.madeByHand(type));
}
