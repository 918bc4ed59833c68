import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { LimitInfo, LimitTotals, Overview } from '../../api.js';
import { percent, perSecond, plural, whole } from '../data/format.js';
import { hrefOf } from '../data/route.js';
import { lately, ofLimit } from '../data/series.js';
import { Icon } from '../parts/icons.js';
import { Empty, ModeBadge, Panel } from '../parts/small.js';
import { Spark } from '../parts/spark.js';

const NONE: LimitTotals = { allowed: 0, refused: 0, shadowRefused: 0, near: 0, candidateRefused: 0, candidateAsked: 0 };

interface Row {
  readonly name: string;
  /** Its facts; `undefined` for limits that functions and code provide. */
  readonly limit: LimitInfo | undefined;
  readonly totals: LimitTotals;
}

const decisions = ({ allowed, refused }: LimitTotals): number => allowed + refused;
const share = (part: number, all: number): number => (all === 0 ? 0 : part / all);

/** The numeric columns, by which the table can be sorted. */
const COLUMNS = {
  allowed: { label: 'Allowed', by: ({ totals }: Row) => totals.allowed },
  refused: { label: 'Refused', by: ({ totals }: Row) => totals.refused },
  share: { label: 'Share refused', by: ({ totals }: Row) => share(totals.refused, decisions(totals)) },
  near: { label: 'Near the limit', by: ({ totals }: Row) => share(totals.near, decisions(totals)) },
} as const;

type Sorting = { by: 'name' | keyof typeof COLUMNS; down: boolean };

/** Each limit with its numbers. */
export function LimitsTable({
  limits,
  overview,
}: {
  limits: readonly LimitInfo[];
  overview: Omit<Overview, 'range'>;
}): JSX.Element {
  const [sorting, setSorting] = useState<Sorting>({ by: 'name', down: false });
  const known = new Map(limits.map((limit) => [limit.name, limit]));
  const names = new Set([...known.keys(), ...Object.keys(overview.totals)]);
  const rows = sorted(
    [...names].map((name) => ({ name, limit: known.get(name), totals: ofLimit(overview.totals, name) ?? NONE })),
    sorting,
  );
  const sort = (by: Sorting['by']): void =>
    setSorting((last) => ({ by, down: last.by === by ? !last.down : by !== 'name' }));
  if (rows.length === 0) {
    return (
      <Panel id="limits" title="Limits">
        <Empty icon="limit" title="There is no limit yet">
          Give a route one, such as @RateLimit(&#123; algo: 'gcra', rate: 20, interval: '1s' &#125;), or the module a
          list of limits.
        </Empty>
      </Panel>
    );
  }
  return (
    <Panel id="limits" title="Limits" bare>
      <table class="table limits" aria-labelledby="limits">
        <thead>
          <tr>
            <Heading label="Limit" sorted={sorting.by === 'name' && sorting} onSort={() => sort('name')} />
            {Object.entries(COLUMNS).map(([name, { label }]) => (
              <Heading
                key={name}
                number
                label={label}
                sorted={sorting.by === name && sorting}
                onSort={() => sort(name as keyof typeof COLUMNS)}
              />
            ))}
            <th scope="col">Over time</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <LimitRow key={row.name} row={row} overview={overview} />
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function LimitRow({
  row: { name, limit, totals },
  overview,
}: {
  row: Row;
  overview: Omit<Overview, 'range'>;
}): JSX.Element {
  const series = ofLimit(overview.series.limits, name);
  const steps = Math.max(1, Math.round(5_000 / overview.stepMs));
  const now = (values: readonly number[] = []): string =>
    `${perSecond((lately(values, steps) * 1_000) / overview.stepMs)} /s`;
  const all = decisions(totals);
  return (
    <tr>
      <th scope="row">
        {limit ? (
          <a class="main-text" href={hrefOf('limit', name)}>
            {name}
          </a>
        ) : (
          <span class="main-text">{name}</span>
        )}{' '}
        {limit && limit.mode !== 'enforce' && <ModeBadge mode={limit.mode} />}
        <span class="sub">{limit ? `${limit.rate}, by ${limit.key}` : 'given by a function or by code'}</span>
      </th>
      <td class="number" data-label="Allowed">
        {whole(totals.allowed)} <span class="sub">{now(series?.allowed)}</span>
      </td>
      <td class="number" data-label="Refused">
        {whole(totals.refused)} <span class="sub">{now(series?.refused)}</span>
      </td>
      <td class="number" data-label="Share refused">
        {percent(totals.refused, all)} <span class="sub">of {whole(all)}</span>
      </td>
      <td class="number" data-label="Near the limit">
        {percent(totals.near, all)} <span class="sub">{plural(totals.near, 'time')}</span>
      </td>
      <td class="whole">{series && <Spark allowed={series.allowed} refused={series.refused} />}</td>
    </tr>
  );
}

function Heading({
  label,
  sorted: by,
  number = false,
  onSort,
}: {
  label: string;
  sorted: Sorting | false;
  number?: boolean;
  onSort: () => void;
}): JSX.Element {
  return (
    <th
      scope="col"
      class={number ? 'number' : undefined}
      aria-sort={by ? (by.down ? 'descending' : 'ascending') : undefined}
    >
      <button type="button" class="sort" onClick={onSort}>
        {label}
        <Icon name="sort" />
      </button>
    </th>
  );
}

function sorted(rows: readonly Row[], { by, down }: Sorting): Row[] {
  const byName = rows.toSorted((one, other) => one.name.localeCompare(other.name));
  const ascending =
    by === 'name' ? byName : byName.toSorted((one, other) => COLUMNS[by].by(one) - COLUMNS[by].by(other));
  return down ? ascending.toReversed() : ascending;
}
