import type { LoggedRequest } from './logged-request.js';
import { randomNumbers } from './random-numbers.js';
import { RequestKey } from './tracked-keys.js';

/** Requests that are made up. */
export interface Generated {
  /** `'poisson'`: each comes independently of all others. `'constant'`: one after another, evenly. */
  readonly arrivals: 'poisson' | 'constant';
  /** Requests in a microsecond, on the average, of all keys together. */
  readonly rate: number;
  /** For how long, in microseconds. */
  readonly duration: number;
  readonly seed: number;
  /** How many keys there are; each request has any of them, as likely as all others. */
  readonly keys: number;
}

/** So many keys are remembered. */
const MOST_REMEMBERED = 50_000;

/** When they begin, so that a simulation that is repeated is the same. */
const START = Date.UTC(2030, 0, 1) * 1000;

/** Makes requests up: the same ones for the same seed. `names` are the keys of limits, of which `global` is one for all. */
export function* generate(generated: Generated, names: readonly string[]): Generator<LoggedRequest> {
  const { arrivals, rate, duration, keys } = generated;
  const random = randomNumbers(generated.seed);
  const known = new Map<number, RequestKey[]>();
  const made = (number: number): RequestKey[] => {
    let each = known.get(number);
    if (each !== undefined) return each;
    each = names.map((name) => new RequestKey(name === 'global' ? name : `key-${number + 1}`));
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(number, each);
    return each;
  };
  for (let count = 1, elapsed = 0; ; count++) {
    elapsed = arrivals === 'constant' ? count / rate : elapsed - Math.log(1 - random()) / rate;
    if (elapsed > duration) return;
    const key = made(Math.floor(random() * keys));
    yield { time: START + Math.floor(elapsed), keys: key, cost: 1 };
  }
}
