import { RateLimitConfigError } from '../errors/errors.js';
import { holdMessages } from '../errors/messages/hold.js';
import { newIdentifier } from './identifier.js';
import { duration, type Duration, oneOf, orElse } from './options.js';

/** What happens to held units when their hold lapses. */
export const LAPSES = ['charge', 'release'] as const;

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

/**
 * Reads `hold` and `onLapse`. A hold is remembered for `known` microseconds or longer, and `windows` describes its windows.
 * Throws `RateLimitConfigError`.
 */
export function holdTerms(
  { hold, onLapse }: HoldOptions,
  location: string,
  windows: string,
  known = 0,
): HoldTerms | undefined {
  if (hold === undefined) {
    if (onLapse !== undefined) throw new RateLimitConfigError(holdMessages.lapseWithoutHold(location));
    return undefined;
  }
  const held = duration(location, 'hold', hold);
  const releases = oneOf(location, 'onLapse', orElse(onLapse, 'charge'), LAPSES) === 'release';
  return { duration: held, releases, known: Math.max(held, known), windows: hashOf(windows) };
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
