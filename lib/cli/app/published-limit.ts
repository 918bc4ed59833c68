import type { ExactLimit } from '../../app/config/limit-definition.js';
import { addressForm } from '../../app/key-resolvers/index.js';
import type { Rule } from '../../app/rules/rule.js';
import { readPublished } from '../../console/telemetry/published-limits.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { keyMessages } from '../../engine/errors/messages/key.js';
import { InputError, UsageError } from '../command.js';
import { redisOf } from './app-redis.js';
import { withApp } from './operation.js';
import type { Place } from './place.js';

/** Stands for a function that makes the keys of a limit: they may be any text. */
const ANY_KEY = () => undefined;

/**
 * A place with its limit as instances with a console publish it: only they know by what it counts. `--limit` applies if no instance
 * publishes the limit, or if the two have different algorithms. Throws `UsageError` if neither is given.
 */
export async function asPublished(place: Place): Promise<Place> {
  if ('file' in place || place.published === undefined) return place;
  const { published: name, limit } = place;
  const app = await withApp({ ...place, limit: undefined }, false, (started) =>
    readPublished(redisOf(started).redis).catch(() => undefined),
  );
  const found = app?.limits.find(({ info, definition }) => info.name === name && definition !== undefined);
  const definition = found?.definition as ExactLimit | undefined;
  // A limit within another one also needs that other limit.
  const isUsable = definition !== undefined && definition.within === undefined;
  if (!isUsable || (limit !== undefined && limit.definition.algo !== definition.algo)) {
    if (limit !== undefined) return place;
    throw new UsageError(cliMessages.missingOption('limit', cliMessages.limitExpected()));
  }
  const isByFunction = definition.key === undefined && found!.info.key !== 'ip';
  const known = isByFunction ? { ...definition, key: ANY_KEY } : definition;
  return { ...place, limit: { name, definition: known as ExactLimit, everywhere: found!.place === 'limits' } };
}

/** Refuses an address as the key of a limit of which it is not known by what it counts: most count addresses as `ip:…`. */
export function refuseBareAddress({ settings }: Rule, key: string): void {
  if (settings.hasKey === true || settings.key.given !== 'ip') return;
  const address = addressForm(key, settings.ipv6Prefix);
  if (address === undefined || address === key) return;
  throw new InputError(cliMessages.bareAddress(key, keyMessages.identity(address)));
}
