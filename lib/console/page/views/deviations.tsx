import { legible } from '../../../engine/util/figures.js';
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Deviation, DeviationKind, Deviations } from '../../api.js';
import { useResource } from '../data/client.js';
import { identityOf, useNow, useStore } from '../data/store.js';
import { moment, whole } from '../data/format.js';
import { useParam } from '../data/route.js';
import { session, type ViewProps } from '../data/session.js';
import { useDialog } from '../parts/dialog.js';
import { PageTurns, Search } from '../parts/paged.js';
import { Badge, Choice, Empty, Note, Panel, Select, Table, UntilCell, ViewHead, Waiting } from '../parts/small.js';
import { ending } from './deviation-ends.js';
import { Who } from './quick-actions.js';

const KINDS: readonly { value: DeviationKind; label: string; none: string }[] = [
  { value: 'blocks', label: 'Blocks', none: 'Nobody is blocked' },
  { value: 'overrides', label: 'Overrides', none: 'No rate or mode is overridden' },
  { value: 'lists', label: 'List entries', none: 'Nobody is on a list' },
  { value: 'leases', label: 'Held units', none: 'Nobody holds units' },
];

/** The number of rows displayed at once, out of those in a response. */
const SHOWN = 25;
const EVERY_MS = 5_000;
/** How long a pause in typing has to be before the search starts. */
const TYPING_MS = 250;

/** The current deviations from the configuration, with their key, actor, reason and end. */
export function DeviationsView({ session: about }: ViewProps): JSX.Element {
  const { canAct, canWrite } = useStore(session);
  const [kind, setKind] = useParam<DeviationKind>(
    'kind',
    'blocks',
    KINDS.map(({ value }) => value),
  );
  const mayEnd = canWrite || (canAct && (kind === 'blocks' || kind === 'leases'));
  const [limit, setLimit] = useParam('limit', '');
  // The search may contain an identity, so it isn't in the address.
  const [find, setFind] = useState('');
  const { data, error, reload, page, turn } = useDeviations(kind, limit, find);
  const [dialog, openDialog] = useDialog();
  const shown = data?.entries.slice(page.from, page.from + SHOWN) ?? [];
  const described = KINDS.find(({ value }) => value === kind)!;
  const hasMore = data !== undefined && (data.entries.length > page.from + SHOWN || data.next !== undefined);
  return (
    <>
      <ViewHead title="Deviations">
        Current differences from the configuration: for which key, by whom, why, and until when.
      </ViewHead>
      <div class="toolbar">
        <Choice name="kind" legend="What to list" value={kind} options={KINDS} onChoose={setKind} />
        <Find value={find} onFind={setFind} />
        <Select
          label="Limit"
          value={limit}
          onChoose={setLimit}
          options={[['', 'all'], ...about.limits.map(({ name }) => [name, name] as const)]}
        />
      </div>
      {data?.problem !== undefined && <Note danger>{data.problem}</Note>}
      {data === undefined ? (
        <Waiting error={error} what="deviations" onRetry={reload} />
      ) : (
        <Panel id="deviations" title={described.label} note={coverageOf(kind, data)} bare>
          {shown.length === 0 ? (
            <Empty
              icon={data.problem === undefined ? 'done' : 'alert'}
              title={emptyTitle(data, described.none, find, limit)}
            >
              {hasMore ? 'There may be some on the next page.' : 'Changes appear here within two seconds.'}
            </Empty>
          ) : (
            <Rows entries={shown} onEnd={mayEnd ? (entry) => openDialog(ending(entry, reload)) : undefined} />
          )}
          {(hasMore || page.isLater) && (
            <PageTurns what="deviations" hasBack={page.isLater} hasNext={hasMore} onTurn={turn} />
          )}
        </Panel>
      )}
      {(data?.unread ?? 0) > 0 && (
        <Note>
          {whole(data!.unread!)} more {data!.unread === 1 ? 'key was' : 'keys were'} recorded whose state cannot be read
          here: a list decides instead of the limit, Redis doesn't respond, or the limit isn't part of this app.
        </Note>
      )}
      {dialog}
    </>
  );
}

function Find({ value, onFind }: { value: string; onFind: (text: string) => void }): JSX.Element {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const search = (next: string): void => {
    setText(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onFind(next.trim()), TYPING_MS);
  };
  return <Search label="Find by key, author or reason" value={text} onInput={search} />;
}

/** The responses to one query, page by page. */
function useDeviations(kind: DeviationKind, limit: string, find: string) {
  const query = JSON.stringify([kind, limit, find]);
  const [state, setState] = useState<{ query: string; pages: readonly (readonly [cursor: string, from: number])[] }>();
  const pages = state?.query === query ? state.pages : [['', 0] as const];
  const [cursor, from] = pages.at(-1)!;
  const body = { kind, ...(find && { find }), ...(limit && { limit }), ...(cursor && { cursor }) };
  const found = useResource<Deviations>('api/deviations', EVERY_MS, body);

  const turn = (by: 1 | -1): void => {
    if (by === -1) setState({ query, pages: pages.slice(0, -1) });
    else {
      const { entries = [], next } = found.data ?? {};
      const isWithin = entries.length > from + SHOWN;
      if (isWithin) setState({ query, pages: [...pages, [cursor, from + SHOWN]] });
      else if (next !== undefined) setState({ query, pages: [...pages, [next, 0]] });
    }
  };
  return { ...found, page: { from, isLater: pages.length > 1 }, turn };
}

function emptyTitle({ problem }: Deviations, none: string, find: string, limit: string): string {
  if (problem !== undefined) return 'Not known';
  return find === '' && limit === '' ? none : 'No matches';
}

/** The entries that a list can contain: no store can list its blocks and held units. */
function coverageOf(kind: DeviationKind, { since, isCut }: Deviations): string {
  if (kind === 'overrides') return 'For all limits whose rates and modes can be changed.';
  if (kind === 'lists') return 'From the configuration, from policies, and added while the app runs.';
  const seen = since == null ? 'No key was recorded yet' : `Seen since ${moment(since)}`;
  const what =
    kind === 'blocks'
      ? 'by instances with a console: calls that block, and refusals of limits with blockFor. Each was checked now'
      : 'by instances with a console: leases of concurrency limits, not holds of reservations. Each was checked now';
  return `${seen}, ${what}.${isCut === true ? ' There were more than the 1,000 that are kept.' : ''}`;
}

function Rows({
  entries,
  onEnd,
}: {
  entries: readonly Deviation[];
  onEnd: ((entry: Deviation) => void) | undefined;
}): JSX.Element {
  const now = useNow();
  return (
    <Table id="deviations" of={['Who', 'Limit', 'What', 'Until', 'By']} action={onEnd && 'End it'}>
      {entries.map((entry) => {
        const action = onEnd && ending(entry, () => undefined);
        return (
          <tr key={`${entry.kind} ${entry.limit} ${entry.id} ${entry.kind === 'overrides' ? entry.of : ''}`}>
            <th scope="row">
              <Whom of={entry} />
            </th>
            <td data-label="Limit" class="wide">
              {entry.limit ?? 'all limits'}
            </td>
            <td data-label="What">
              <What of={entry} />
            </td>
            <UntilCell at={entry.expiresAt} now={now} />
            <td data-label="By" class="wide">
              {madeBy(entry)}
              {entry.reason !== undefined && <span class="sub">{entry.reason}</span>}
            </td>
            {onEnd && (
              <td class="number">
                {action && (
                  <button
                    type="button"
                    class="button small"
                    aria-label={`${action.confirm}: ${nameOf(entry)}`}
                    onClick={() => onEnd(entry)}
                  >
                    {action.confirm}
                  </button>
                )}
              </td>
            )}
          </tr>
        );
      })}
    </Table>
  );
}

function Whom({ of: entry }: { of: Deviation }): JSX.Element {
  const { key } = entry;
  if (key === null) return <>everybody</>;
  const isOne = entry.kind === 'lists' ? entry.item.kind === 'identity' : !key.endsWith('*');
  if (!isOne) return <span class="main-text">{legible(key)}</span>;
  const id = entry.kind === 'lists' ? key : entry.id;
  return <Who of={{ id, ...(key !== id && { identity: key }) }} />;
}

function What({ of: entry }: { of: Deviation }): JSX.Element {
  switch (entry.kind) {
    case 'blocks':
      return <Badge tone="danger">blocked</Badge>;
    case 'overrides':
      return (
        <>
          {entry.of} <span class="sub">{entry.value}</span>
        </>
      );
    case 'lists':
      return <Badge tone={entry.item.list === 'allow' ? 'good' : 'danger'}>{entry.item.list} list</Badge>;
    default:
      return (
        <>
          holds {whole(entry.held)} of {whole(entry.quota)}
        </>
      );
  }
}

const ORIGINS = { limit: 'the limit, by its blockFor', console: 'a console', code: 'code; who is not known' } as const;
const SOURCES = { configured: 'the configuration', policy: 'the policy', changed: 'not known' } as const;

function madeBy(entry: Deviation): string {
  if (entry.by !== undefined) return entry.by;
  if (entry.kind === 'blocks') return ORIGINS[entry.origin];
  if (entry.kind === 'lists') return SOURCES[entry.item.source];
  return entry.kind === 'leases' ? 'its own requests' : 'not known';
}

function nameOf({ key, id, limit }: Deviation): string {
  return `${key === null ? 'everybody' : (identityOf(id) ?? key)} in ${limit ?? 'all limits'}`;
}
