import type { ReadOptions } from '../options/check-options.js';
import { time, words } from '../options/kinds.js';
import type { OptionRows } from '../options/option-row.js';
import type { Duration } from '../options/values.js';
import { newIdentifier } from './identifier.js';

/** What happens to held units when their hold lapses. */
const LAPSES = ['charge', 'release'] as const;

/**
 * What happens to held units when their hold lapses.
 * @useDeclaredType
 */
export type OnLapse = (typeof LAPSES)[number];

/** The options of limits whose units can be held: reserved at an estimate, and settled at what was really used. */
export interface HoldOptions {
  /**
   * Allows `reserve`, and sets how long it holds units that are not settled, for example because their process died: milliseconds
   * or a duration such as `'5m'`, at most 1 year.
   * @default units cannot be reserved
   */
  hold?: Duration;
  /**
   * What happens to units whose hold lapses: `'charge'` keeps them charged, `'release'` gives them back. Settling them later
   * corrects either.
   * @default 'charge'
   */
  onLapse?: OnLapse;
}

export const holdOptions = {
  hold: {
    kind: time,
    text: "How long reserved units are held that nobody settles, such as '5m'.",
    usual: "'5m' of a budget, else no reservations",
    // A block forgets what was used, held or not; and units that were taken for several requests are those of none.
    excludes: ['blockFor', 'prefetch'],
  },
  onLapse: {
    kind: words(LAPSES),
    text: "What becomes of held units then: 'charge' or 'release'.",
    default: 'charge',
    needs: { hold: "the time after which held units lapse, such as '5m'" },
  },
} as const satisfies OptionRows;

/** How units are held; times are microseconds. */
export interface HoldTerms {
  /** After how long a hold lapses. */
  readonly duration: number;
  /** Whether its units are then given back. */
  readonly releases: boolean;
  /** How long a hold is remembered, at least. */
  readonly known: number;
  /** Distinguishes the windows in which its units count from those of other options. */
  readonly windows: number;
}

/** The terms of a `hold` that was read. It is remembered for `known` microseconds or longer, and `windows` describes its windows. */
export function holdTerms(
  { hold, onLapse }: ReadOptions<typeof holdOptions>,
  windows: string,
  known = 0,
): HoldTerms | undefined {
  if (hold === undefined) return undefined;
  return { duration: hold, releases: onLapse === 'release', known: Math.max(hold, known), windows: hashOf(windows) };
}

/** 32 bits of a text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The numbers that the script needs after the parameters of an algorithm: lua/driver/holds.lua has their names. */
export function holdNumbers({ duration: held, releases, known, windows }: HoldTerms): number[] {
  return [held, releases ? 1 : 0, known, newIdentifier(), windows];
}
