import { legible } from '../../../engine/util/figures.js';
import type { ChangeInfo, Difference } from '../../api.js';
import { duration, withMoments } from '../data/format.js';

/** The kinds of changes that the log can be filtered by. */
export const KINDS = {
  all: { label: 'all changes', has: () => true },
  rates: { label: 'of rates and modes', has: ({ action }: ChangeInfo) => action === 'rate' || action === 'mode' },
  lists: { label: 'of lists', has: ({ action }: ChangeInfo) => action === 'list' },
  keys: { label: 'of single keys', has: ({ key }: ChangeInfo) => key !== null },
  rollbacks: { label: 'rollbacks', has: ({ action }: ChangeInfo) => action === 'rollback' },
} as const;
export type Kind = keyof typeof KINDS;

const CONFIGURED = 'as configured';
const NO_ENTRY = 'no entry';

/** A change as a sentence: the actor, the key, the old and new value, and the reason. */
export function sentenceOf(change: ChangeInfo, key: string | null): string {
  const { by, reason } = change;
  return `${by ?? 'Code'} ${whatOf(change, key)}${reason === undefined ? '' : `: ${reason}`}.`;
}

/** The effect of a change on one setting: `the rate of login from 20 to as configured`. */
export function differenceText({ action, limit, key: _, before, after }: Difference, key: string | null): string {
  const of = `${limit === null ? 'all limits' : limit}${key === null ? '' : ` for ${legible(key)}`}`;
  const none = action === 'list' ? NO_ENTRY : CONFIGURED;
  const what = action === 'list' ? 'the entry' : `the ${action === 'mode' ? 'mode' : 'rate'}`;
  return `${what} of ${of} from ${textOf(before, none)} to ${textOf(after, none)}`;
}

function whatOf(change: ChangeInfo, rawKey: string | null): string {
  const key = rawKey === null ? null : legible(rawKey);
  const { action, limit, after, rollbackTo } = change;
  const limited = limit === null ? 'all limits' : `'${limit}'`;
  switch (action) {
    case 'rate':
    case 'mode':
      return `changed ${differenceText(change, rawKey)}`;
    case 'list':
      return after === undefined
        ? `took ${key} off the list of ${limited}`
        : `put ${key} on a list of ${limited}: ${withMoments(after)}`;
    case 'rollback':
      return `rolled back to version ${rollbackTo}, which changed ${differenceText(change, rawKey)}`;
    case 'block':
      return `blocked ${key} in ${limited} for ${durationText(after)}`;
    case 'unblock':
      return `unblocked ${key} in ${limited}`;
    case 'reset':
      return `reset ${key} in ${limited}`;
    case 'refund':
      return `gave ${key} ${after} of ${limited} back`;
    default:
      return `charged ${key} ${after} of ${limited}`;
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Converts a duration in any notation to the page's format. */
function durationText(written = ''): string {
  const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)\s?(ms|s|m|h|d)?$/.exec(written) ?? [];
  return number === undefined ? written : duration(Number(number) * UNIT_MS[unit]!);
}

function textOf(value: string | undefined, none: string): string {
  return value === undefined ? none : withMoments(value);
}
