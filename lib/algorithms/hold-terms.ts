import { RateLimitConfigError } from '../errors/errors.js';
import { holdMessages } from '../errors/messages/hold.js';
import { newIdentifier } from './identifier.js';
import { duration, type Duration, oneOf, orElse } from './options.js';

/** What becomes of units that are held when their hold lapses. */
export const LAPSES = ['charge', 'release'] as const;

/**
 * What becomes of units that are held when their hold lapses.
 * @useDeclaredType
 */
export type OnLapse = (typeof LAPSES)[number];

/** Options of limits whose units can be held: reserved at an estimate, and settled at what was really used. */
export interface HoldOptions {
  /**
   * Allows `reserve`, and says how long it holds units that nobody settles, as when their process dies: milliseconds or a
   * duration such as `'5m'`, at most 1 year.
   * @default units cannot be reserved
   */
  hold?: Duration;
  /**
   * What becomes of units whose hold lapses: `'charge'` keeps them charged, `'release'` gives them back. What is settled later is
   * corrected in both cases.
   * @default 'charge'
   */
  onLapse?: OnLapse;
}

/** How units are held, in microseconds. */
export interface HoldTerms {
  /** After how long a hold lapses. */
  readonly duration: number;
  /** Whether its units are given back then. */
  readonly releases: boolean;
  /** How long it is known at least. */
  readonly known: number;
  /** Tells the windows in which its units count from those of other options. */
  readonly windows: number;
}

/**
 * Reads `hold` and `onLapse`. A hold is known for `known` microseconds or longer, in `windows` of what this text says. Throws
 * `RateLimitConfigError`.
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

/** What the script needs behind the parameters of an algorithm: lua/driver/holds.lua has the names. */
export function holdNumbers({ duration: held, releases, known, windows }: HoldTerms): number[] {
  return [held, releases ? 1 : 0, known, newIdentifier(), windows];
}
