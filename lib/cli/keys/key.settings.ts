import { argumentsOf, causeOf, OPERATION_OPTIONS, timeOf } from '../app/operation.js';
import { type Place, readPlace, refuseOptions } from '../app/place.js';
import { hashedHeader } from '../../app/key-resolvers/header.js';
import { readArguments } from '../options.js';

/** What is done to the counter of a key. */
export type KeyAction = 'block' | 'unblock' | 'reset';

/** The settings of a command line. */
export interface KeySettings {
  readonly action: KeyAction;
  readonly place: Place;
  readonly limit: string;
  readonly key: string;
  /** How long a block lasts. */
  readonly time: string;
  readonly cause: { readonly by?: string; readonly reason?: string };
  readonly force: boolean;
  readonly json: boolean;
}

/** Reads the command line. Throws `UsageError` or `RateLimitConfigError`. */
export function readSettings(action: KeyAction, args: readonly string[], environment: NodeJS.ProcessEnv): KeySettings {
  const read = readArguments(args, { ...OPERATION_OPTIONS, for: { type: 'string' } });
  if (action !== 'block') refuseOptions(read, ['for'], "'block'");
  const [limit = '', key = ''] = argumentsOf(read, 'the name of a limit', 'a key such as tenant:acme');
  const place = readPlace(read, environment, { name: limit, published: true });
  const { switches } = read;
  return {
    action,
    place,
    limit,
    key: hashedHeader(key),
    time: timeOf(read) ?? '10m',
    cause: causeOf(read),
    force: switches.has('force'),
    json: switches.has('json'),
  };
}
