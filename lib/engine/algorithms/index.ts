import { adaptive } from './adaptive.js';
import type { Algorithm, Variant } from './algorithm.js';
import { budget } from './budget.js';
import { calendarWindow } from './calendar-window.js';
import { concurrency } from './concurrency.js';
import { fixedWindow } from './fixed-window.js';
import { gcra } from './gcra.js';
import { leakyBucket } from './leaky-bucket.js';
import { AlgorithmRegistry } from './registry.js';
import { plan } from './plan/plan.js';
import { slidingLog } from './sliding-log.js';
import { slidingWindow } from './sliding-window.js';
import { tokenBucket } from './token-bucket.js';
import { warmUp } from './warm-up/warm-up.js';
import { words } from '../options/kinds.js';
import type { OptionRow } from '../options/option-row.js';

/** Every algorithm. To add an algorithm, add a line here. */
const list = [
  fixedWindow,
  calendarWindow,
  budget,
  slidingWindow,
  slidingLog,
  tokenBucket,
  gcra,
  leakyBucket,
  concurrency,
  adaptive,
] as const;

const variants: readonly Variant[] = [warmUp, plan];

type OwnOptions = Parameters<(typeof list)[number]['compile']>[0];

/** The name of an algorithm. */
export type AlgorithmName = AlgorithmOptions['algo'];

/** The options of one algorithm. */
export type OptionsOf<Algo extends AlgorithmName> = Extract<OwnOptions, { algo: Algo }>;

type KeysOf<O> = O extends unknown ? keyof O : never;
/** An algorithm's options without those of any other, even in places where TypeScript doesn't check for excess properties. */
type Alone<O> = O extends unknown ? O & { [Option in Exclude<KeysOf<OwnOptions>, keyof O>]?: never } : never;

/**
 * The options of every algorithm, discriminated by `algo`.
 * @useDeclaredType
 */
export type AlgorithmOptions = Alone<OwnOptions>;

/** The options of algorithms whose counters several processes can share: all but `adaptive`. */
export type SharedAlgorithmOptions = Exclude<AlgorithmOptions, { algo: 'adaptive' }>;

/** Every algorithm by name. */
export const algorithms = new AlgorithmRegistry(list as readonly unknown[] as readonly Algorithm[], variants);

/** The algorithm of a limit, or of a candidate. */
export const algoOption: OptionRow = {
  kind: words(algorithms.names),
  text: 'The algorithm. Omit it for a limit that is defined in code, and for a candidate.',
};
