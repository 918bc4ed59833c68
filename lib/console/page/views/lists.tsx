import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Changed, LimitInfo, ListItem, ListItems } from '../../api.js';
import { sayChanged } from '../data/changed.js';
import { get, post, useResource } from '../data/client.js';
import { identityOf, sayFailed, useNow, useStore } from '../data/store.js';
import { session, type ViewProps } from '../data/session.js';
import { type Action, useDialog } from '../parts/dialog.js';
import { Icon } from '../parts/icons.js';
import { Badge, Empty, Note, Panel, Table, UntilCell, ViewHead, Waiting } from '../parts/small.js';
import { expiry } from './key-actions.js';

const SOURCES = { configured: 'by the configuration', policy: 'by the policy', changed: 'here or by code' } as const;

/** The lists: who is exempt from limits, and who is always denied. */
export function ListsView({ session: about }: ViewProps): JSX.Element {
  const { data, error, reload } = useResource<ListItems>('api/lists');
  const [more, setMore] = useState<{ after: ListItems; entries: ListItem[]; next: string | undefined }>();
  const { canAct, canWrite } = useStore(session);
  const [dialog, openDialog] = useDialog();
  const further = more !== undefined && more.after === data ? more : undefined;
  const next = further ? further.next : data?.next;

  const loadMore = async (): Promise<void> => {
    if (!data || next === undefined) return;
    try {
      const page = await get<ListItems>(`api/lists?cursor=${encodeURIComponent(next)}`);
      setMore({ after: data, entries: [...(further?.entries ?? []), ...page.entries], next: page.next });
    } catch (failure) {
      sayFailed(failure);
    }
  };

  // If lists could not be read, they aren't displayed as empty.
  const isRead = data !== undefined && (data.problem === undefined || data.entries.length > 0);
  const entries = [...(data?.entries ?? []), ...(further?.entries ?? [])];
  return (
    <>
      <ViewHead
        title="Lists"
        aside={
          canAct && (
            <button
              type="button"
              class="button main"
              onClick={() => openDialog(adding(about.limits, canWrite, reload))}
            >
              <Icon name="plus" />
              Add an entry
            </button>
          )
        }
      >
        The allow list exempts clients from limits; the deny list rejects their requests. Each entry applies to one
        limit or to all.
      </ViewHead>
      {isRead && data.problem !== undefined && <Note danger>{data.problem}</Note>}
      {!isRead ? (
        <Waiting error={data?.problem ?? error} what="lists" onRetry={reload} />
      ) : (
        <Panel id="entries" title="Entries" bare>
          {entries.length === 0 ? (
            <Empty icon="lists" title="Nobody is on a list">
              {canAct
                ? 'Add an identity, a pattern such as tenant:*, or a network such as 10.0.0.0/8.'
                : 'Entries come from the module, from a policy, or from users who can make changes here.'}
            </Empty>
          ) : (
            <Entries entries={entries} onRemove={canAct ? (entry) => openDialog(removing(entry, reload)) : undefined} />
          )}
          {next !== undefined && (
            <div class="table-foot">
              <button type="button" class="button" onClick={() => void loadMore()}>
                Show more
              </button>
            </div>
          )}
        </Panel>
      )}
      {dialog}
    </>
  );
}

function Entries({
  entries,
  onRemove,
}: {
  entries: readonly ListItem[];
  onRemove: ((entry: ListItem) => void) | undefined;
}): JSX.Element {
  const now = useNow();
  const { canWrite } = useStore(session);
  return (
    <Table id="entries" of={['Who', 'List', 'Limit', 'Until', 'Entered']} action={onRemove && 'Remove'}>
      {entries.map((entry) => (
        <tr key={entry.id}>
          <th scope="row">
            <span class="main-text">{identityOf(entry.entry) ?? entry.entry}</span>
            <span class="sub">{entry.kind === 'ip' ? 'address or network' : entry.kind}</span>
          </th>
          <td data-label="List">
            <Badge tone={entry.list === 'allow' ? 'good' : 'danger'}>{entry.list}</Badge>
          </td>
          <td data-label="Limit" class="wide">
            {entry.limit ?? 'all limits'}
          </td>
          <UntilCell at={entry.expiresAt} now={now} />
          <td data-label="Entered" class="wide">
            {entry.by === undefined ? SOURCES[entry.source] : `by ${entry.by}`}
            {entry.reason !== undefined && <span class="sub">{entry.reason}</span>}
          </td>
          {onRemove && (
            <td class="number">
              {entry.removable && (canWrite || entry.expiresAt !== null) && (
                <button
                  type="button"
                  class="button small"
                  aria-label={`Remove ${entry.entry} from the ${entry.list} list`}
                  onClick={() => onRemove(entry)}
                >
                  Remove
                </button>
              )}
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

function adding(limits: readonly LimitInfo[], canWrite: boolean, onChanged: () => void): Action {
  return {
    title: 'Add an entry',
    intro: 'It applies on all instances within a second.',
    fields: [
      {
        name: 'list',
        label: 'List',
        value: 'deny',
        options: [
          { value: 'deny', label: 'deny: refused' },
          { value: 'allow', label: 'allow: exempt from limits' },
        ],
      },
      {
        name: 'identity',
        label: 'Identity',
        placeholder: 'user:42',
        hint: 'A key as limits count it. A star at the end matches all keys with this prefix: tenant:*. Enter networks below.',
      },
      {
        name: 'ip',
        label: 'Or an address',
        placeholder: '203.0.113.7',
        hint: 'Or a network, such as 10.0.0.0/8.',
      },
      {
        name: 'limit',
        label: 'Limit',
        value: '',
        options: [{ value: '', label: 'all limits' }, ...limits.map(({ name }) => ({ value: name, label: name }))],
      },
      expiry(canWrite),
    ],
    confirm: 'Add',
    async run(values) {
      const filled = Object.entries(values).filter(([, text]) => text.trim() !== '');
      const body = Object.fromEntries(filled.map(([name, text]) => [name, text.trim()]));
      const answer = await post<Changed>('api/lists', body);
      onChanged();
      sayChanged(`${body['identity'] ?? body['ip']} is on the ${body['list']} list.`, answer, onChanged);
    },
  };
}

function removing({ id, list, entry }: ListItem, onChanged: () => void): Action {
  return {
    title: `Remove from the ${list} list`,
    intro: (
      <>
        <strong>{entry}</strong> is counted like everybody else again.
      </>
    ),
    fields: [],
    confirm: 'Remove',
    gone: true,
    async run({ reason }) {
      const answer = await post<Changed>('api/lists/remove', { id, reason });
      onChanged();
      sayChanged(`${entry} is not on the ${list} list any more.`, answer, onChanged);
    },
  };
}
