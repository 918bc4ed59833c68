import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ChangeInfo, Changed, Changes, RollbackPreview } from '../../api.js';
import { sayChanged } from '../data/changed.js';
import { get, post, useResource } from '../data/client.js';
import { moment, plural, relative } from '../data/format.js';
import { identityOf, say, sayFailed, useNow, useStore } from '../data/store.js';
import { hrefOf, useParam } from '../data/route.js';
import { loadSession, session, type ViewProps } from '../data/session.js';
import { type Action, useDialog } from '../parts/dialog.js';
import { matches, Pager, Search, usePaged } from '../parts/paged.js';
import { Badge, Empty, labelsOf, Note, Panel, Select, Table, type Tone, ViewHead, Waiting } from '../parts/small.js';
import { sentenceOf, differenceText, KINDS, type Kind } from './change-text.js';

const TONES: Readonly<Record<ChangeInfo['action'], Tone>> = {
  rate: 'accent',
  mode: 'plum',
  list: 'accent',
  rollback: 'warning',
  block: 'danger',
  unblock: 'good',
  reset: 'plain',
  refund: 'good',
  penalize: 'danger',
};
const PAGE = 12;

/** The log of changes: who changed which setting, when, and why. */
export function ChangesView({ session: about, limit }: ViewProps): JSX.Element {
  const query = limit === undefined ? '' : `?limit=${encodeURIComponent(limit)}`;
  const { data, error, reload } = useResource<Changes>(`api/changes${query}`, 10_000);
  const { canWrite } = useStore(session);
  const [dialog, openDialog] = useDialog();
  // Not in the address, since the search may contain an identity.
  const [find, setFind] = useState('');
  const [kind, setKind] = useParam<Kind>('kind', 'all', Object.keys(KINDS) as Kind[]);
  // If changes could not be read, the list isn't displayed as empty.
  const isRead = data !== undefined && (data.problem === undefined || data.changes.length > 0);
  const found = (data?.changes ?? []).filter(
    (change) =>
      KINDS[kind].has(change) && matches(`${sentenceOf(change, nameOf(change))} ${change.version ?? ''}`, find),
  );
  const paged = usePaged(found, PAGE);
  const done = (): void => {
    reload();
    void loadSession();
  };
  const open = (made: Promise<Action>): void => {
    made.then(openDialog, sayFailed);
  };
  return (
    <>
      <ViewHead
        title="Changes"
        aside={
          <label class="inline-field">
            <span>Limit</span>
            <select
              value={limit ?? ''}
              onChange={(event) => (location.hash = hrefOf('changes', event.currentTarget.value || undefined))}
            >
              <option value="">all limits</option>
              {about.limits.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        }
      >
        Changes made here and by code, newest first. You can roll back rates, modes and lists, or undo a single change.
      </ViewHead>
      {isRead && data.problem !== undefined && <Note danger>{data.problem}</Note>}
      {!isRead ? (
        <Waiting error={data?.problem ?? error} what="log" onRetry={reload} />
      ) : (
        <Panel id="log" title="Log" bare>
          {data.changes.length > 0 && (
            <div class="toolbar">
              <Search label="Find changes" placeholder="Find changes: who, what, why" value={find} onInput={setFind} />
              <Select label="Show" value={kind} onChoose={setKind} options={labelsOf(KINDS)} />
              <span class="soft small" role="status">
                {found.length < data.changes.length && `${plural(found.length, 'change')} of ${data.changes.length}`}
              </span>
            </div>
          )}
          {data.changes.length === 0 ? (
            <Empty icon="changes" title="Nothing was changed yet">
              Changes of blocks, counters, rates, modes and lists appear here as soon as somebody makes one, with their
              name and reason.
            </Empty>
          ) : found.length === 0 ? (
            <Empty icon="changes" title="No matching change">
              Of {plural(data.changes.length, 'change')}, none matches your search.
            </Empty>
          ) : (
            <Log
              changes={paged.shown}
              onUndo={canWrite ? (change) => openDialog(undoing(change, done)) : undefined}
              onRollback={canWrite ? (change) => open(rollingBack(change, done)) : undefined}
            />
          )}
          <Pager of={paged} what="changes" />
        </Panel>
      )}
      {dialog}
    </>
  );
}

function nameOf({ key }: Pick<ChangeInfo, 'key'>): string | null {
  return key === null ? null : (identityOf(key) ?? key);
}

function Log({
  changes,
  onUndo,
  onRollback,
}: {
  changes: readonly ChangeInfo[];
  onUndo: ((change: ChangeInfo) => void) | undefined;
  onRollback: ((change: ChangeInfo) => void) | undefined;
}): JSX.Element {
  const now = useNow();
  const versions = changes.map(({ version }) => version);
  return (
    <Table id="log" of={['What', 'When']} action={onRollback && 'Undo, or roll back'}>
      {changes.map((change, index) => (
        <tr key={`${change.at} ${change.version} ${index}`}>
          <th scope="row" class="wide">
            <Badge tone={TONES[change.action]}>{change.action}</Badge> {sentenceOf(change, nameOf(change))}
            {change.version !== null && (
              <span class="sub">
                version {change.version}
                {change.rollbackTo !== undefined && `, back to ${change.rollbackTo}`}
              </span>
            )}
          </th>
          <td data-label="When" class="when numbers">
            {moment(change.at)}
            <span class="sub">{relative(change.at, now)}</span>
          </td>
          {onRollback && (
            <td class="number">
              {change.version !== null && versions.indexOf(change.version) === index && (
                <span class="buttons">
                  <button
                    type="button"
                    class="button small"
                    aria-label={`Undo version ${change.version} alone`}
                    onClick={() => onUndo?.(change)}
                  >
                    Undo
                  </button>
                  <button
                    type="button"
                    class="button small"
                    aria-label={`Roll back to before version ${change.version}`}
                    onClick={() => onRollback(change)}
                  >
                    Roll back
                  </button>
                </span>
              )}
            </td>
          )}
        </tr>
      ))}
    </Table>
  );
}

function undoing(change: ChangeInfo, onChanged: () => void): Action {
  const { version } = change;
  return {
    title: `Undo version ${version}`,
    intro: <>{sentenceOf(change, nameOf(change))} Only this change is undone, unless a later change replaced it.</>,
    fields: [],
    confirm: 'Undo',
    async run({ reason }) {
      const answer = await post<Changed>('api/undo', { version, reason });
      onChanged();
      sayChanged(`Version ${version} is undone.`, answer, onChanged);
    },
  };
}

/** First requests the changes that the rollback would undo. */
async function rollingBack({ version }: ChangeInfo, onChanged: () => void): Promise<Action> {
  const { undone, newest } = await get<RollbackPreview>(`api/rollback?version=${version! - 1}`);
  return {
    title: `Undo version ${version} and later`,
    intro: (
      <>
        {undone.length === 0
          ? 'Nothing changes: these changes have already ended.'
          : `This changes ${plural(undone.length, 'thing')}. Counters are left unchanged.`}
        <ul class="undone">
          {undone.slice(0, MOST_UNDONE).map((difference) => (
            <li key={`${difference.action} ${difference.limit} ${difference.key}`}>
              {differenceText(difference, nameOf(difference))}
            </li>
          ))}
          {undone.length > MOST_UNDONE && <li>and {undone.length - MOST_UNDONE} more</li>}
        </ul>
      </>
    ),
    fields: [],
    confirm: 'Roll back',
    danger: true,
    async run({ reason }) {
      const { changed, warning } = await post<Changed>('api/rollback', { version: version! - 1, newest, reason });
      onChanged();
      say(changed ? `Everything is as before version ${version}.` : 'There was nothing to undo.');
      if (warning !== undefined) say(warning, 'warning');
    },
  };
}

const MOST_UNDONE = 12;
