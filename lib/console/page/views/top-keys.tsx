import type { JSX } from 'preact';
import type { LimitInfo, TopKey, TopKeys } from '../../api.js';
import { amount, clock, whole } from '../data/format.js';
import { live } from '../data/live.js';
import { useResource } from '../data/client.js';
import { hrefOf } from '../data/route.js';
import { useStore } from '../data/store.js';
import { session } from '../data/session.js';
import { type Action, useDialog } from '../parts/dialog.js';
import { Empty, Note, Panel, Waiting } from '../parts/small.js';
import { KeyButtons, Who } from './quick-actions.js';

const SHOWN = 10;

/** The keys that a limit rejects most often, and those that use it most. */
export function TopKeysPanel({ info, always }: { info: LimitInfo; always: boolean }): JSX.Element {
  const { name: limit } = info;
  const { canAct } = useStore(session);
  const [dialog, openDialog] = useDialog();
  const onAct = canAct ? openDialog : undefined;
  const now = useStore(live)?.top;
  const { data, error, reload } = useResource<TopKeys>(`api/top?limit=${encodeURIComponent(limit)}`);
  const top = now?.limit === limit ? now : data;
  if (!top) return <Waiting error={error} what="top keys" onRetry={reload} />;
  const hashed = [...top.refused, ...top.used].some(({ identity }) => identity === undefined);
  const isRead = top.problem === undefined;
  return (
    <>
      {!isRead && <Note danger>{top.problem}</Note>}
      <div class="columns">
        <Panel
          id="top-refused"
          title="Refused most"
          note={`${since(top.since)}${always ? '' : ', while somebody views the limit'}.`}
        >
          <Ranked keys={top.refused} kind="refused" info={info} isRead={isRead} onAct={onAct} />
        </Panel>
        <Panel
          id="top-used"
          title="Uses most"
          note={`${since(top.usedSince)}, while somebody views the limit, by the units that were allowed.`}
        >
          <Ranked keys={top.used} kind="used" info={info} isRead={isRead} onAct={onAct} />
        </Panel>
      </div>
      {dialog}
      {hashed && (
        <Note>
          Keys are hashes here. To find out whose a key is, type an identity into <a href={hrefOf('lookup')}>Look-up</a>
          : it shows the hash, and the identity stands here from then on, in this tab.
        </Note>
      )}
    </>
  );
}

function since(time: number | null): string {
  return time === null ? 'Counting begins now' : `Counted since ${clock(time)}`;
}

function Ranked({
  keys,
  kind,
  info,
  isRead,
  onAct,
}: {
  info: LimitInfo;
  /** `undefined` for users who may not make changes. */
  onAct: ((action: Action) => void) | undefined;
  keys: readonly TopKey[];
  kind: 'refused' | 'used';
  /** True if the keys are those of all instances. */
  isRead: boolean;
}): JSX.Element {
  const most = keys[0]?.count ?? 0;
  const shown = (count: number): string => (kind === 'used' ? amount(count, info.unit) : whole(count));
  if (most === 0 && !isRead) {
    return (
      <Empty icon="alert" title="Not known">
        The instance that serves this page counted no keys. The counts of the other instances could not be read.
      </Empty>
    );
  }
  if (most === 0) {
    return (
      <Empty
        icon={kind === 'refused' ? 'done' : 'limit'}
        title={kind === 'refused' ? 'Nobody was refused' : 'Nobody was counted'}
      >
        Keys appear here within two seconds after their requests.
      </Empty>
    );
  }
  return (
    <ol class={`ranked ${kind}`}>
      {keys.slice(0, SHOWN).map((key) => (
        <li key={key.id}>
          <span class="fill" style={{ width: `${(100 * key.count) / most}%` }} />
          <Who of={key} />
          <span class="numbers">
            {key.error > 0 && `${shown(key.count - key.error)} to `}
            {shown(key.count)}
          </span>
          {onAct && (
            <KeyButtons limit={info} who={key} reason={`${info.name}: ${shown(key.count)} ${kind}`} onAct={onAct} />
          )}
        </li>
      ))}
    </ol>
  );
}
