import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { type BoundKey, formsOf } from '../key-resolvers/key-resolver.factory.js';
import { keySchemes } from '../key-resolvers/index.js';
import type { RequestTrait } from '../../storage/features/feature.js';
import type { AllCommonOptions } from '../config/limit-options.js';

/** The `key` options that a middleware supports, for messages. */
export function earlyForms(): string {
  return `${formsOf(keySchemes.filter(({ needsRoute }) => !needsRoute))} in phase 'middleware'`;
}

/**
 * Throws `RateLimitConfigError` if a limit needs something that a middleware can't know. It runs before the route and the user are known,
 * so functions receive the request as it is at that point.
 */
export function refuseWhatNeedsARoute(
  key: BoundKey,
  options: AllCommonOptions,
  trait: RequestTrait<BoundKey> | undefined,
  location: string,
  everywhere: boolean,
): void {
  const { within, perRoute } = options;
  const refuse = (option: string, got: unknown, expected: string) => {
    throw new RateLimitConfigError(messages.wrongOption(location, option, got, expected));
  };
  if (!everywhere) refuse('phase', 'middleware', "guard or authenticated (middleware only in the module's 'limits')");
  if (key.needsRoute) refuse('key', key.given, earlyForms());
  if (typeof trait?.by === 'object')
    refuse(trait.option, (options as Record<string, unknown>)[trait.option], "nothing in phase 'middleware'");
  if (within !== undefined) refuse('within', within, "nothing in phase 'middleware'");
  if (perRoute === true) refuse('perRoute', perRoute, "false in phase 'middleware'");
}
