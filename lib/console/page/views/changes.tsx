import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ChangeInfo, Changed, Changes } from '../../api.js';
import { post } from '../data/client.js';
import { moment, relative } from '../data/format.js';
import { useNow } from '../data/now.js';
import { useResource } from '../data/resource.js';
import { hrefOf } from '../data/route.js';
import { loadSession, session } from '../data/session.js';
import { useStore } from '../data/store.js';
import { identityOf } from '../data/subject.js';
import { say } from '../data/toasts.js';
import { type Action, ActionDialog } from '../parts/dialog.js';
import { Badge, Empty, Note, Panel, type Tone, ViewHead, Waiting } from '../parts/small.js';
import type { ViewProps } from './view.js';

const ACTIONS: Readonly<Record<ChangeInfo['action'], { text: string; tone: Tone }>> = {
  rate: { text: 'rate', tone: 'accent' },
  mode: { text: 'mode', tone: 'plum' },
  list: { text: 'list', tone: 'accent' },
  rollback: { text: 'rolled back', tone: 'warning' },
  block: { text: 'blocked', tone: 'danger' },
  unblock: { text: 'unblocked', tone: 'good' },
  reset: { text: 'reset', tone: 'plain' },
  refund: { text: 'refunded', tone: 'good' },
  penalize: { text: 'penalized', tone: 'danger' },
};

/** Who changed what, when, and why. */
export function ChangesView({ session: about, limit }: ViewProps): JSX.Element {
  const query = limit === undefined ? '' : `?limit=${encodeURIComponent(limit)}`;
  const { data, error, reload } = useResource<Changes>(`api/changes${query}`, 10_000);
  const { canWrite } = useStore(session);
  const [action, setAction] = useState<Action>();
  // What could not be read is not shown as empty.
  const isRead = data !== undefined && (data.problem === undefined || data.changes.length > 0);
  const done = (): void => {
    reload();
    void loadSession();
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
        What was changed here and by code, the newest first. Rates, modes and lists can be rolled back.
      </ViewHead>
      {isRead && data.problem !== undefined && <Note danger>{data.problem}</Note>}
      {!isRead ? (
        <Waiting error={data?.problem ?? error} what="log" onRetry={reload} />
      ) : (
        <Panel id="log" title="Log" bare>
          {data.changes.length === 0 ? (
            <Empty icon="changes" title="Nothing was changed yet">
              Blocks, resets, rates, modes and entries of lists stand here as soon as somebody changes one, with name
              and reason.
            </Empty>
          ) : (
            <Log
              changes={data.changes}
              onRollback={canWrite ? (change) => setAction(rollingBack(change, done)) : undefined}
            />
          )}
        </Panel>
      )}
      {action && <ActionDialog action={action} onClose={() => setAction(undefined)} />}
    </>
  );
}

function Log({
  changes,
  onRollback,
}: {
  changes: readonly ChangeInfo[];
  onRollback: ((change: ChangeInfo) => void) | undefined;
}): JSX.Element {
  const now = useNow();
  const versions = changes.map(({ version }) => version);
  return (
    <table class="table" aria-labelledby="log">
      <thead>
        <tr>
          <th scope="col">What</th>
          <th scope="col">When</th>
          <th scope="col">From, to</th>
          <th scope="col">Who, and why</th>
          {onRollback && (
            <th scope="col">
              <span class="hidden-text">Roll back</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {changes.map((change, index) => (
          <tr key={`${change.at} ${change.version} ${index}`}>
            <th scope="row">
              <Badge tone={ACTIONS[change.action].tone}>{ACTIONS[change.action].text}</Badge>{' '}
              <span class="main-text">{change.limit ?? 'all limits'}</span>
              {change.key !== null && <span class="sub breakable">{identityOf(change.key) ?? change.key}</span>}
            </th>
            <td data-label="When" class="when numbers">
              {moment(change.at)}
              <span class="sub">{relative(change.at, now)}</span>
            </td>
            <td data-label="From, to" class="wide">
              <Difference change={change} />
            </td>
            <td data-label="Who, and why" class="wide">
              {change.by ?? 'by code'}
              {change.reason !== undefined && <span class="sub">{change.reason}</span>}
            </td>
            {onRollback && (
              <td class="number">
                {change.version !== null && versions.indexOf(change.version) === index && (
                  <button
                    type="button"
                    class="button small"
                    aria-label={`Roll back to before version ${change.version}`}
                    onClick={() => onRollback(change)}
                  >
                    Roll back
                  </button>
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Difference({ change: { before, after, rollbackTo, version } }: { change: ChangeInfo }): JSX.Element {
  return (
    <>
      {before !== undefined && <span class="soft">{withMoments(before)}</span>}
      {before !== undefined && after !== undefined && <span aria-label="to"> → </span>}
      {after !== undefined && withMoments(after)}
      {version !== null && (
        <span class="sub">
          version {version}
          {rollbackTo !== undefined && `, back to ${rollbackTo}`}
        </span>
      )}
    </>
  );
}

/** Formats times in this browser's time zone. */
function withMoments(text: string): string {
  return text.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => moment(Date.parse(time)));
}

function rollingBack({ version }: ChangeInfo, onChanged: () => void): Action {
  return {
    title: `Undo version ${version} and later`,
    intro: `All rates, modes and entries of lists are as they were before version ${version}. What was counted stays. This is a change, too, which can be undone.`,
    fields: [],
    confirm: 'Roll back',
    danger: true,
    async run({ reason }) {
      const { changed, warning } = await post<Changed>('api/rollback', { version: version! - 1, reason });
      onChanged();
      say(changed ? `Everything is as before version ${version}.` : 'There was nothing to undo.');
      if (warning !== undefined) say(warning, 'warning');
    },
  };
}
