import type { JSX } from 'preact';
import type { Figures, LimitInfo, LimitTotals } from '../../api.js';
import { percent, perSecond, plural, whole } from '../data/format.js';
import { hrefOf, setParams, useParam } from '../data/route.js';
import { ofLimit, rateNow } from '../data/series.js';
import { Icon } from '../parts/icons.js';
import { Find, matches, Pager, usePaged } from '../parts/paged.js';
import { Empty, labelsOf, ModeBadge, Panel, Select } from '../parts/small.js';
import { Spark } from '../parts/spark.js';

/** The rows per page: on a phone, each takes as much space as several in a table. */
const PAGE = window.matchMedia('(max-width: 56rem)').matches ? 3 : 10;

/** The limits with their numbers, those with problems first. The filter is in the address. */
export function LimitsTable({ limits, overview }: { limits: readonly LimitInfo[]; overview: Figures }): JSX.Element {
  const [find] = useParam('find', '');
  const [show, setShow] = useParam<Shown>('show', 'all', Object.keys(SHOWN) as Shown[]);
  const [group, setGroup] = useParam<Group | ''>('group', '', Object.keys(GROUPS) as Group[]);
  const [within] = useParam('in', '');
  const [sort] = useParam<Sort>('sort', 'worst', Object.keys(SORTS) as Sort[]);
  const [order] = useParam('order', '');
  const isTurned = order === 'turned';
  const all = rowsOf(limits, overview);
  const found = sorted(
    grouped(
      all.filter((row) => isFound(row, find) && isWithin(row, within) && SHOWN[show].has(row)),
      group,
    ),
    sort,
    isTurned,
  );
  const paged = usePaged(found, PAGE);
  const sortBy = (next: Sort): void => {
    const turns = next === sort && !isTurned;
    setParams({ page: '', sort: next === 'worst' ? '' : next, order: turns ? 'turned' : '' });
  };
  if (all.length === 0) {
    return (
      <Panel id="limits" title="Limits">
        <Empty icon="limit" title="No limits yet">
          Add one to a route, such as @RateLimit(&#123; algo: 'gcra', rate: 20, interval: '1s' &#125;), or add 'limits'
          to the module.
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel id="limits" title="Limits" bare>
      <div class="toolbar">
        <Find what="limits" found={found.length} />
        <Select label="Show" value={show} onChoose={setShow} options={labelsOf(SHOWN)} />
        <Select
          label="Group"
          value={group}
          onChoose={(next) => {
            setParams({ in: '' });
            setGroup(next);
          }}
          options={[['', 'no groups'], ...labelsOf(GROUPS)]}
        />
        <Select label="Sort" value={sort} onChoose={sortBy} options={labelsOf(SORTS)} />
        {within !== '' && (
          <button type="button" class="button small" onClick={() => setParams({ in: '', page: '' })}>
            {within.slice(within.indexOf(':') + 1)} <Icon name="close" />
            <span class="hidden-text">Show all groups</span>
          </button>
        )}
      </div>
      {found.length === 0 ? (
        <Empty icon="limit" title="No matching limit">
          Of {plural(all.length, 'limit')}, none matches your search.
        </Empty>
      ) : (
        <table class="table limits" aria-labelledby="limits">
          <thead>
            <tr>
              {(['name', 'allowed', 'refused', 'share', 'near'] as const).map((column) => (
                <Heading key={column} sort={column} isSorted={column === sort} isTurned={isTurned} onSort={sortBy} />
              ))}
              <th scope="col">Over time</th>
            </tr>
          </thead>
          <tbody>
            {paged.shown.map((row) => (
              <Row key={row.name} row={row} group={group} overview={overview} />
            ))}
          </tbody>
        </table>
      )}
      <Pager of={paged} what="limits" />
    </Panel>
  );
}

function Row({ row, group, overview }: { row: LimitRow; group: Group | ''; overview: Figures }): JSX.Element {
  const { name, limit, totals, members } = row;
  const { stepMs } = overview;
  const all = members.map((member) => ofLimit(overview.series.limits, member)).filter((series) => series !== undefined);
  const summed = (field: 'allowed' | 'refused'): number[] =>
    all.length === 1
      ? all[0]![field]
      : overview.series.times.map((_, at) => all.reduce((sum, series) => sum + (series[field][at] ?? 0), 0));
  const [allowed, refused] = [summed('allowed'), summed('refused')];
  const now = (values: readonly number[]): string => `${perSecond(rateNow(values, stepMs))} /s`;
  // Some of its decisions are only counted as "(others)".
  const isUnknown = members.some((member) => overview.unknown?.includes(member));
  const count = (number: number): string =>
    isUnknown ? (number > 0 ? `${whole(number)}+` : 'unknown') : whole(number);
  const share = (number: number): string => (isUnknown ? 'unknown' : percent(number, decisions(totals)));
  return (
    <tr>
      <th scope="row">
        {group !== '' ? (
          <a
            class="main-text"
            href={hrefOf('overview')}
            onClick={(event) => {
              event.preventDefault();
              setParams({ group: '', in: `${group}:${name}`, page: '' });
            }}
          >
            {name}
          </a>
        ) : limit ? (
          <a class="main-text" href={hrefOf('limit', name)}>
            {name}
          </a>
        ) : (
          <span class="main-text">{name}</span>
        )}{' '}
        {limit && limit.mode !== 'enforce' && <ModeBadge mode={limit.mode} />}
        <span class="sub">
          {group !== ''
            ? plural(members.length, 'limit')
            : limit
              ? `${limit.rate}, by ${limit.key}`
              : 'given by a function or by code'}
        </span>
      </th>
      <td class="number" data-label="Allowed">
        {count(totals.allowed)} <span class="sub">{now(allowed)}</span>
      </td>
      <td class="number" data-label="Refused">
        {count(totals.refused)} <span class="sub">{now(refused)}</span>
      </td>
      <td class="number" data-label="Share refused">
        {share(totals.refused)} <span class="sub">of {count(decisions(totals))}</span>
      </td>
      <td class="number" data-label="Near the limit">
        {share(totals.near)} <span class="sub">{plural(totals.near, 'time')}</span>
      </td>
      <td class="whole">{all.length > 0 && <Spark allowed={allowed} refused={refused} />}</td>
    </tr>
  );
}

function Heading({
  sort,
  isSorted,
  isTurned,
  onSort,
}: {
  sort: Sort;
  isSorted: boolean;
  isTurned: boolean;
  onSort: (sort: Sort) => void;
}): JSX.Element {
  const isAscending = (sort === 'name') !== isTurned;
  return (
    <th
      scope="col"
      class={sort === 'name' ? undefined : 'number'}
      aria-sort={isSorted ? (isAscending ? 'ascending' : 'descending') : undefined}
    >
      <button type="button" class="sort" onClick={() => onSort(sort)}>
        {sort === 'name' ? 'Limit' : SORTS[sort].label}
        <Icon name="sort" />
      </button>
    </th>
  );
}

const NONE: LimitTotals = { allowed: 0, refused: 0, shadowRefused: 0, near: 0, candidateRefused: 0, candidateAsked: 0 };

/** A row of the table: one limit, or a group of limits. */
interface LimitRow {
  readonly name: string;
  /** The facts about the limit; `undefined` for limits that functions and code provide, and for groups. */
  readonly limit: LimitInfo | undefined;
  /** The names of the limits in it. */
  readonly members: readonly string[];
  readonly totals: LimitTotals;
  /** Rejections per second in the last seconds. */
  readonly refusedNow: number;
}

const GROUPS = {
  key: { label: 'by key', of: ({ key }: LimitInfo) => `by ${key}` },
  algo: { label: 'by algorithm', of: ({ algo }: LimitInfo) => algo },
  mode: { label: 'by mode', of: ({ mode }: LimitInfo) => mode },
} as const;
type Group = keyof typeof GROUPS;
const UNKNOWN_GROUP = 'from functions and code';

const SHOWN = {
  all: { label: 'all', has: () => true },
  refusing: { label: 'with rejections', has: ({ totals }: LimitRow) => totals.refused > 0 },
  near: { label: 'close to their limit', has: ({ totals }: LimitRow) => totals.near > 0 },
  used: { label: 'in use', has: ({ totals }: LimitRow) => decisions(totals) > 0 },
  unused: { label: 'unused', has: ({ totals }: LimitRow) => decisions(totals) === 0 },
  unenforced: { label: 'in shadow or off', has: ({ limit }: LimitRow) => (limit?.mode ?? 'enforce') !== 'enforce' },
} as const;
type Shown = keyof typeof SHOWN;

/** The sort orders. Each number is followed by the one that decides between equal rows. */
const SORTS = {
  worst: {
    label: 'Worst first',
    by: (row: LimitRow) => [row.refusedNow, row.totals.refused, shareNear(row), row.totals.allowed],
  },
  name: { label: 'Name', by: () => [] },
  allowed: { label: 'Allowed', by: ({ totals }: LimitRow) => [totals.allowed] },
  refused: { label: 'Refused', by: ({ totals }: LimitRow) => [totals.refused] },
  share: { label: 'Share refused', by: ({ totals }: LimitRow) => [totals.refused / Math.max(1, decisions(totals))] },
  near: { label: 'Near the limit', by: (row: LimitRow) => [shareNear(row)] },
} as const;
type Sort = keyof typeof SORTS;

function decisions({ allowed, refused }: LimitTotals): number {
  return allowed + refused;
}

function shareNear({ totals }: LimitRow): number {
  return totals.near / Math.max(1, decisions(totals));
}

/** All limits that are declared or were counted. */
function rowsOf(limits: readonly LimitInfo[], { totals, series, stepMs }: Figures): LimitRow[] {
  const known = new Map(limits.map((limit) => [limit.name, limit]));
  const names = new Set([...known.keys(), ...Object.keys(totals)]);
  return [...names].map((name) => ({
    name,
    limit: known.get(name),
    members: [name],
    totals: ofLimit(totals, name) ?? NONE,
    refusedNow: rateNow(ofLimit(series.limits, name)?.refused ?? [], stepMs),
  }));
}

/** Returns true if a row contains the words of the search in its name, its rate, or its key. */
function isFound({ name, limit }: LimitRow, find: string): boolean {
  return matches(limit === undefined ? name : `${name} ${limit.rate} by ${limit.key} ${limit.mode}`, find);
}

/** Returns true if a row belongs to a group, in the format of the address: `key:by ip`. */
function isWithin({ limit }: LimitRow, within: string): boolean {
  if (within === '') return true;
  const [group, name] = [within.slice(0, within.indexOf(':')), within.slice(within.indexOf(':') + 1)];
  return Object.hasOwn(GROUPS, group) && groupOf(limit, group as Group) === name;
}

/** A row for each group with the sums of its limits; without a group, the rows themselves. */
function grouped(rows: readonly LimitRow[], group: Group | ''): readonly LimitRow[] {
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
function sorted(rows: readonly LimitRow[], sort: Sort, isTurned: boolean): LimitRow[] {
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
