import { withoutSecrets } from '../../engine/errors/reasons.js';
import { CAUSE_EXPECTED, isCauseText } from '../../app/overrides/change-options.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { DURATION_UNITS, milliseconds } from '../../engine/options/values.js';
import { type CommandOptions, InputError, type ReadArguments, UsageError } from '../command.js';
import { type Place, PLACE_OPTIONS } from './place.js';
import { assertConnected, redisOf, startApp, type StartedApp } from './started-app.js';
import type { ExactLimit } from '../../app/config/limit-definition.js';
import { addressForm } from '../../app/key-resolvers/index.js';
import type { Rule } from '../../app/rules/rule.js';
import { readPublished } from '../../console/telemetry/published-limits.js';
import { keyMessages } from '../../engine/errors/messages/calls.js';

/** A placeholder for a function that returns the keys of a limit: they may be any text. */
const ANY_KEY = () => undefined;

/**
 * A place with its limit as published by instances with a console, since only they know its key. `--limit` applies if no instance publishes
 * the limit, or if the two have different algorithms. Throws `UsageError` if there is neither.
 */
export async function asPublished(place: Place): Promise<Place> {
  if ('file' in place || place.published === undefined) return place;
  const { published: name, limit } = place;
  const app = await withApp({ ...place, limit: undefined }, false, (started) =>
    readPublished(redisOf(started)).catch(() => undefined),
  );
  const found = app?.limits.find(({ info, definition }) => info.name === name && definition !== undefined);
  const definition = found?.definition as ExactLimit | undefined;
  // A limit within another one also needs its parent.
  const isUsable = definition !== undefined && definition.within === undefined;
  if (!isUsable || (limit !== undefined && limit.definition.algo !== definition.algo)) {
    if (limit !== undefined) return place;
    throw new UsageError(cliMessages.missingOption('limit', cliMessages.limitExpected()));
  }
  const isByFunction = definition.key === undefined && found!.info.key !== 'ip';
  const known = isByFunction ? { ...definition, key: ANY_KEY } : definition;
  return { ...place, limit: { name, definition: known as ExactLimit, everywhere: found!.place === 'limits' } };
}

/** Throws for an address as the key of a limit whose kind of key is unknown, since most limits count addresses as `ip:…`. */
export function refuseBareAddress({ settings }: Rule, key: string): void {
  if (settings.hasKey === true || settings.key.given !== 'ip') return;
  const address = addressForm(key, settings.ipv6Prefix);
  if (address === undefined || address === key) return;
  throw new InputError(cliMessages.bareAddress(key, keyMessages.identity(address)));
}

export const OPERATION_OPTIONS = {
  ...PLACE_OPTIONS,
  by: { value: '<name>', help: 'Who makes the change, for the log' },
  reason: { value: '<text>', help: 'Why, for the log' },
  force: {
    help: 'Makes the change even if the limit has no counter now, no instance has used the prefix yet, or the key is an address',
  },
  json: { help: 'Prints JSON' },
} as const satisfies CommandOptions;

/** The actor and the reason of a change, from `--by` and `--reason`. Throws `UsageError`. */
export function causeOf({ values }: ReadArguments): { by?: string; reason?: string } {
  const [by, reason] = [values.get('by'), values.get('reason')];
  for (const [option, text] of Object.entries({ by, reason })) {
    if (text === undefined || isCauseText(text)) continue;
    throw new UsageError(cliMessages.wrongOption(option, withoutSecrets(text), CAUSE_EXPECTED));
  }
  return { ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
}

/** The value of `--for` as passed. */
export function timeOf({ values }: ReadArguments): string | undefined {
  const time = values.get('for');
  if (time !== undefined && !((milliseconds(time) ?? 0) > 0)) {
    const expected = `a duration such as '10m', '1h' ${DURATION_UNITS}, at most 1 year`;
    throw new UsageError(cliMessages.wrongOption('for', withoutSecrets(time), expected));
  }
  return time;
}

/** Errors of the library, which may come from another copy of it, and the corresponding errors of this program. */
const OF_LIBRARY = new Map<string, new (message: string) => Error>([
  ['RateLimitConfigError', UsageError],
  ['RateLimitArgumentError', UsageError],
  ['RateLimitStoreError', InputError],
]);

/** Runs something with an app that can reach its Redis servers, then closes the app. */
export function withApp<T>(place: Place, changes: boolean, work: (app: StartedApp) => Promise<T>): Promise<T> {
  return withStarted(place, changes, async (app) => {
    await assertConnected(app);
    return work(app);
  });
}

/** Runs something with an app, then closes the app. */
export async function withStarted<T>(
  place: Place,
  changes: boolean,
  work: (app: StartedApp) => Promise<T>,
): Promise<T> {
  const app = await startApp(place, changes);
  try {
    return await work(app);
  } catch (error) {
    const wrong = error instanceof Error ? OF_LIBRARY.get(error.name) : undefined;
    throw wrong === undefined ? error : new wrong((error as Error).message);
  } finally {
    await app.close();
  }
}
