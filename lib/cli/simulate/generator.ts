import type { LoggedRequest } from './logged-request.js';
import { randomNumbers } from './random-numbers.js';
import { RequestKey } from './tracked-keys.js';

export interface Generated {
  /** `'poisson'`: arrivals are independent of each other. `'constant'`: evenly spaced. */
  readonly arrivals: 'poisson' | 'constant';
  /** Requests per microsecond on average, for all keys together. */
  readonly rate: number;
  /** The duration in microseconds. */
  readonly duration: number;
  readonly seed: number;
  /** The number of keys; each request has any of them with equal probability. */
  readonly keys: number;
}

const MOST_REMEMBERED = 50_000;

/** When they start: a fixed time, so that a repeated simulation is the same. */
const START = Date.UTC(2030, 0, 1) * 1000;

/** Generates requests: the same ones for the same seed. `names` are the keys of limits; `global` counts all requests together. */
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
