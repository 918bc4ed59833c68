import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { Algorithm, Parameters } from './algorithm.js';
import { algorithms, type AlgorithmOptions } from './index.js';

/** What happens to a limit while its store fails. */
export type OnStoreError = 'local' | 'allow' | 'deny';

/** What becomes of units that were left before a quota changed: they scale with it, or grow by as much as it grew. */
export interface CarryOver {
  readonly mode: 'proportional' | 'additive';
  readonly quotaBefore: number;
}

/** What a scope holds only if a method has a very odd name. */
const SEPARATORS = /[%:\r\n]/g;

export interface LimitSettings {
  /** Where the user wrote it, for messages. */
  readonly place: string;
  /** What shares its counters: the place of its declaration, or nothing if its name alone does. */
  readonly scope?: string;
  readonly name?: string | undefined;
  readonly shadow?: boolean;
  readonly onStoreError?: OnStoreError;
  /** What becomes of the units that were left under another quota, if not what the algorithm makes of it. */
  readonly carry?: CarryOver | undefined;
  /** Whom it refuses, it refuses for so long: microseconds. */
  readonly blockFor?: number;
  /** Its refusals may be remembered: units come back by time alone, or by a call that tells all instances. */
  readonly remembersRefusals?: boolean;
  /** Counted by each instance of the app for itself. */
  readonly instance?: boolean;
  /** How often its counters were made to start anew; each generation has keys of its own. */
  readonly generation?: number;
}

/** A limit whose options have been read: what stores work with. */
export class CompiledLimit {
  readonly name: string;
  readonly scope: string;
  readonly algorithm: Algorithm;
  readonly parameters: Parameters;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow: boolean;
  readonly onStoreError: OnStoreError;
  readonly carry: CarryOver | undefined;
  /** Microseconds for which it refuses whom it has refused; 0 for no longer than it has to. */
  readonly blockFor: number;
  /** Its refusals may be remembered until their wait is over. */
  readonly remembersRefusals: boolean;
  /** Counted by each instance of the app for itself, in process. */
  readonly instance: boolean;
  /** Tells its counters from those of every other limit: no scope in it holds a colon, a code is two letters, a generation digits. */
  readonly id: string;

  constructor(
    options: AlgorithmOptions,
    { place, scope = '', name, shadow = false, generation = 0, ...rest }: LimitSettings,
  ) {
    const algorithm = algorithms.get(options.algo);
    if (algorithm === undefined) {
      throw new RateLimitConfigError(messages.unknownAlgorithm(place, options.algo, [...algorithms.keys()]));
    }
    refuseForeignOptions(options, algorithm, place);
    this.algorithm = algorithm;
    this.parameters = algorithm.compile(options as never, place);
    this.name = name ?? algorithm.defaultName(options as never);
    this.scope = scope;
    this.shadow = shadow;
    this.onStoreError = rest.onStoreError ?? 'local';
    this.blockFor = rest.blockFor ?? 0;
    this.carry = rest.carry;
    this.remembersRefusals = rest.remembersRefusals === true && algorithm.delay === undefined;
    this.instance = rest.instance ?? false;
    const code = generation > 0 ? `${algorithm.code}.${generation}` : algorithm.code;
    this.id = [this.scope.replaceAll(SEPARATORS, encodeURIComponent), this.name, code].join(':');
  }

  get quota(): number {
    return this.parameters.quota;
  }

  /** Milliseconds of the limit's window at `nowMs`. */
  windowMs(nowMs: number): number {
    return this.algorithm.window(this.parameters, nowMs * 1000) / 1000;
  }
}

/** Options that another algorithm knows and this one does not are a mistake; others are the caller's to judge. */
function refuseForeignOptions(options: AlgorithmOptions, algorithm: Algorithm, place: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || algorithm.options.includes(option)) continue;
    const owners = [...algorithms.values()].filter((other) => other.options.includes(option)).map(({ name }) => name);
    if (owners.length === 0) continue;
    throw new RateLimitConfigError(messages.foreignOption(place, option, algorithm.name, algorithm.options, owners));
  }
}
