import type { LimitInfo, LimitTotals, Overview } from '../../api.js';
import { lately, ofLimit } from '../data/series.js';
import { matches } from '../parts/paged.js';

const NONE: LimitTotals = { allowed: 0, refused: 0, shadowRefused: 0, near: 0, candidateRefused: 0, candidateAsked: 0 };
/** The period that counts as "now", in milliseconds. */
export const NOW_MS = 5_000;

/** A row of the table: one limit, or a group of limits. */
export interface LimitRow {
  readonly name: string;
  /** The facts about the limit; `undefined` for limits that functions and code provide, and for groups. */
  readonly limit: LimitInfo | undefined;
  /** The names of the limits in it. */
  readonly members: readonly string[];
  readonly totals: LimitTotals;
  /** Rejections in the last seconds. */
  readonly refusedNow: number;
}

export const GROUPS = {
  key: { label: 'by whom they count', of: ({ key }: LimitInfo) => `by ${key}` },
  algo: { label: 'by algorithm', of: ({ algo }: LimitInfo) => algo },
  mode: { label: 'by mode', of: ({ mode }: LimitInfo) => mode },
} as const;
export type Group = keyof typeof GROUPS;
const UNKNOWN_GROUP = 'given by functions and code';

export const SHOWN = {
  all: { label: 'all', has: () => true },
  refusing: { label: 'that refused', has: ({ totals }: LimitRow) => totals.refused > 0 },
  near: { label: 'that came near', has: ({ totals }: LimitRow) => totals.near > 0 },
  used: { label: 'that were used', has: ({ totals }: LimitRow) => decisions(totals) > 0 },
  unused: { label: 'that were not used', has: ({ totals }: LimitRow) => decisions(totals) === 0 },
  unenforced: { label: 'in shadow or off', has: ({ limit }: LimitRow) => (limit?.mode ?? 'enforce') !== 'enforce' },
} as const;
export type Shown = keyof typeof SHOWN;

/** The sort orders. Each number is followed by the one that decides between equal rows. */
export const SORTS = {
  worst: {
    label: 'Worst first',
    by: (row: LimitRow) => [row.refusedNow, row.totals.refused, shareNear(row), row.totals.allowed],
  },
  name: { label: 'Name', by: () => [] },
  allowed: { label: 'Allowed', by: ({ totals }: LimitRow) => [totals.allowed] },
  refused: { label: 'Refused', by: ({ totals }: LimitRow) => [totals.refused] },
  share: { label: 'Share refused', by: (row: LimitRow) => [shareRefused(row)] },
  near: { label: 'Near the limit', by: (row: LimitRow) => [shareNear(row)] },
} as const;
export type Sort = keyof typeof SORTS;

export function decisions({ allowed, refused }: LimitTotals): number {
  return allowed + refused;
}

function shareRefused({ totals }: LimitRow): number {
  return totals.refused / Math.max(1, decisions(totals));
}

function shareNear({ totals }: LimitRow): number {
  return totals.near / Math.max(1, decisions(totals));
}

/** All limits that are declared or were counted. */
export function rowsOf(limits: readonly LimitInfo[], { totals, series, stepMs }: Omit<Overview, 'range'>): LimitRow[] {
  const known = new Map(limits.map((limit) => [limit.name, limit]));
  const names = new Set([...known.keys(), ...Object.keys(totals)]);
  const steps = Math.max(1, Math.round(NOW_MS / stepMs));
  return [...names].map((name) => ({
    name,
    limit: known.get(name),
    members: [name],
    totals: ofLimit(totals, name) ?? NONE,
    refusedNow: lately(ofLimit(series.limits, name)?.refused ?? [], steps),
  }));
}

/** Returns true if a row contains the words of the search in its name, its rate, or its key. */
export function isFound({ name, limit }: LimitRow, find: string): boolean {
  return matches(limit === undefined ? name : `${name} ${limit.rate} by ${limit.key} ${limit.mode}`, find);
}

/** Returns true if a row belongs to a group, in the format of the address: `key:by ip`. */
export function isWithin({ limit }: LimitRow, within: string): boolean {
  if (within === '') return true;
  const [group, name] = [within.slice(0, within.indexOf(':')), within.slice(within.indexOf(':') + 1)];
  return Object.hasOwn(GROUPS, group) && groupOf(limit, group as Group) === name;
}

/** A row for each group with the sums of its limits; without a group, the rows themselves. */
export function grouped(rows: readonly LimitRow[], group: Group | ''): readonly LimitRow[] {
  if (group === '') return rows;
  const groups = new Map<string, LimitRow[]>();
  for (const row of rows) {
    const name = groupOf(row.limit, group);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups].map(([name, members]) => ({
    name,
    limit: undefined,
    members: members.map((row) => row.name),
    totals: members.reduce((sum, { totals }) => added(sum, totals), NONE),
    refusedNow: members.reduce((sum, row) => sum + row.refusedNow, 0),
  }));
}

/** Sorts rows: the largest first, names from A to Z; or in reverse. */
export function sorted(rows: readonly LimitRow[], sort: Sort, isTurned: boolean): LimitRow[] {
  const ordered = rows.toSorted((one, other) => {
    const theirs = SORTS[sort].by(other);
    const difference = SORTS[sort].by(one).map((value, at) => theirs[at]! - value);
    return difference.find((each) => each !== 0) ?? one.name.localeCompare(other.name);
  });
  return isTurned ? ordered.toReversed() : ordered;
}

function groupOf(limit: LimitInfo | undefined, group: Group): string {
  return limit === undefined ? UNKNOWN_GROUP : GROUPS[group].of(limit);
}

function added(one: LimitTotals, other: LimitTotals): LimitTotals {
  const fields = Object.keys(NONE) as (keyof LimitTotals)[];
  return Object.fromEntries(fields.map((field) => [field, one[field] + other[field]])) as unknown as LimitTotals;
}
