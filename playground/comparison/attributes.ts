import { oneOf, wholeNumber } from '../../lib/engine/options/check-options.js';
import { type AlgorithmName, readAlgorithms, readSettings, type Settings } from '../simulation/settings.js';
import { type Pattern, readPattern } from '../simulation/traffic.js';

/** The attributes of `<sluice-comparison>`; the other options of limits are those of `Settings`. */
export const ATTRIBUTES = [
  'algorithms',
  'pattern',
  'load',
  'rate',
  'interval',
  'burst',
  'queue',
  'slices',
  'limit',
  'hold',
  'estimate',
  'controls',
  'heading-level',
] as const;

/** The most requests an interval, in percent of the rate. */
export const MOST_LOAD = 400;

/** What a comparison begins with. */
export interface Beginning {
  readonly algorithms: readonly AlgorithmName[];
  readonly pattern: Pattern;
  readonly load: number;
  readonly settings: Settings;
  /** Only the pattern can be chosen, or the parameters, too. */
  readonly controls: 'few' | 'full';
  /** The level of its headings. */
  readonly level: number;
}

const ELEMENT = '<sluice-comparison>';

/** Reads attributes, some of which may be left out. Throws `RateLimitConfigError`. */
export function readAttributes(given: Readonly<Record<string, string | undefined>>): Beginning {
  const number = (name: string) => toNumber(given[name]);
  return {
    algorithms: readAlgorithms(given['algorithms'], ELEMENT),
    pattern: readPattern(given['pattern'] ?? 'edge', ELEMENT),
    load: wholeNumber(ELEMENT, 'load', number('load') ?? 150, { min: 10, max: MOST_LOAD }),
    settings: readSettings(
      {
        interval: given['interval'],
        rate: number('rate'),
        burst: number('burst'),
        queue: number('queue'),
        slices: number('slices'),
        limit: number('limit'),
        hold: number('hold'),
        estimate: number('estimate'),
      },
      ELEMENT,
    ),
    controls: oneOf(ELEMENT, 'controls', given['controls'] ?? 'full', ['few', 'full']),
    level: wholeNumber(ELEMENT, 'heading-level', number('heading-level') ?? 3, { min: 2, max: 6 }),
  };
}

/** What is no number stays a text, so that a message shows it. */
function toNumber(text: string | undefined): unknown {
  return text === undefined || !/^-?\d+(\.\d+)?$/.test(text) ? text : Number(text);
}
