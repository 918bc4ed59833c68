import { legible } from '../../../engine/util/figures.js';
import type { JSX } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Changes, LimitState, Lookup, Rates } from '../../api.js';
import { post, RequestError, useResource } from '../data/client.js';
import { connection, messageOf, remember, subject, useStore } from '../data/store.js';
import { moment, plural } from '../data/format.js';
import { session, type ViewProps } from '../data/session.js';
import { useDialog } from '../parts/dialog.js';
import { Field } from '../parts/field.js';
import { Pager, usePaged } from '../parts/paged.js';
import { Badge, Empty, Note, Panel, ViewHead } from '../parts/small.js';
import { sentenceOf } from './change-text.js';
import { StateCard } from './state-card.js';

const EVERY_MS = 5_000;
const PAGE = 6;
/** Up to this many unused limits are unfolded at first; the maximum number of cards for them, and of changes. Others are listed by name. */
const FEW = 3;
const MOST_UNUSED = 6;
const MOST_CHANGES = 10;

const FIELD = {
  name: 'identity',
  label: 'Identity',
  required: true,
  placeholder: 'user:42',
  hint: 'A key as limits count it: ip:203.0.113.7, user:42, tenant:acme, or global.',
} as const;

/** The state of all limits for an identity: why it is rejected, and when it will pass again. */
export function LookupView({ session: about }: ViewProps): JSX.Element {
  const { identity, found } = useStore(subject);
  const { canAct } = useStore(session);
  const rates = useResource<Rates>('api/rates').data?.rates;
  const log = useResource<Changes>('api/changes', 10_000).data?.changes;
  const [text, setText] = useState(identity);
  const [error, setError] = useState('');
  /** Counts the responses to the user. */
  const [asked, setAsked] = useState(0);
  const [busy, setBusy] = useState(false);
  const [dialog, openDialog] = useDialog();

  const ask = async (wanted: string): Promise<void> => {
    if (busy) return;
    if (wanted === '') {
      setError('Enter the identity to look up.');
      return;
    }
    setBusy(true);
    setError('');
    try {
      const answer = await post<Lookup>('api/lookup', { identity: wanted });
      remember(answer.id, wanted);
      // Keeps the order during changes.
      setAsked((count) => count + 1);
      subject.value = { identity: wanted, found: { ...answer, limits: answer.limits.toSorted(byUrgency) } };
    } catch (failure) {
      const wrong =
        failure instanceof RequestError ? failure.fields.find(({ field }) => field === 'identity') : undefined;
      setError(wrong?.message ?? messageOf(failure));
    } finally {
      setBusy(false);
    }
  };

  // A link from the top keys of a limit displays the key immediately.
  useEffect(() => {
    if (identity !== '') void ask(identity);
    const timer = window.setInterval(() => void refresh(), EVERY_MS);
    return () => window.clearInterval(timer);
  }, []);

  // A card stays in its place while changes are made to it.
  const folded = useMemo(() => new Set(found?.limits.filter(isUnused).map(({ limit }) => limit)), [found?.id, asked]);
  const used = found?.limits.filter(({ limit }) => !folded.has(limit)) ?? [];
  const unused = found?.limits.filter(({ limit }) => folded.has(limit)) ?? [];
  const paged = usePaged(used, PAGE);
  const changes = (log ?? []).filter(({ key }) => key !== null && (key === found?.id || key === identity));
  const isUnknown =
    found !== undefined && found.limits.length > 0 && found.limits.every(isUnused) && changes.length === 0;
  const card = (state: LimitState): JSX.Element => (
    <StateCard
      key={state.limit}
      state={state}
      info={about.limits.find(({ name }) => name === state.limit)}
      rate={rates?.find((rate) => rate.limit === state.limit)}
      identity={identity}
      onAct={openDialog}
      onChanged={replace}
    />
  );

  return (
    <>
      <ViewHead title="Look-up">
        Enter an identity to see how many units it has left, which blocks and changes apply to it, until when, and why.
      </ViewHead>
      <section class="panel" aria-label="Key to look up">
        <form
          class="body ask"
          noValidate
          autoComplete="off"
          onSubmit={(event) => {
            event.preventDefault();
            void ask(text.trim());
          }}
        >
          <Field spec={FIELD} value={text} error={error || undefined} onChange={setText} />
          <button type="submit" class="button main" aria-disabled={busy}>
            Look up
          </button>
        </form>
      </section>
      <div role="status" class="hidden-text">
        {found && !busy ? `${plural(found.limits.length, 'limit')} found for ${legible(identity)}` : ''}
      </div>
      {found && (
        <>
          <div class="subject">
            <h2>{legible(identity)}</h2>
            <span class="soft small breakable">
              as <span class="mono">{found.id}</span> in top keys and the log
            </span>
            {!isUnknown && <Summary limits={found.limits} />}
          </div>
          {found.limits.length === 0 && (
            <div class="panel">
              <Empty icon="limit" title="No limit can be looked up">
                You can look up limits that have a name, from 'limits' or 'define'.
              </Empty>
            </div>
          )}
          {isUnknown && (
            <Note>
              Nothing is known about <span class="breakable">{legible(identity)}</span>: no limit has counted it
              recently, and no change, block or list contains it. It may be misspelled.
            </Note>
          )}
          <div class="states">{paged.shown.map(card)}</div>
          <Pager of={paged} what="limits" />
          {unused.length > 0 && (
            <details class="fold" open={unused.length <= FEW}>
              <summary>
                {plural(unused.length, 'limit')} that {unused.length === 1 ? 'has' : 'have'} counted nothing of it
              </summary>
              <div class="states">{unused.slice(0, MOST_UNUSED).map(card)}</div>
              {unused.length > MOST_UNUSED && (
                <p class="soft small breakable">
                  {unused
                    .slice(MOST_UNUSED)
                    .map(({ limit }) => limit)
                    .join(', ')}
                </p>
              )}
            </details>
          )}
          {changes.length > 0 && (
            <Panel id="history" title="Changes of this key">
              <ul class="marks">
                {changes.slice(0, MOST_CHANGES).map((change) => (
                  <li key={`${change.at} ${change.action} ${change.limit}`}>
                    <span class="soft numbers">{moment(change.at)}</span> {sentenceOf(change, identity)}
                  </li>
                ))}
              </ul>
            </Panel>
          )}
          {!canAct && <Note>You can view, but not change: the app lets other users make changes.</Note>}
        </>
      )}
      {dialog}
    </>
  );
}

/** Returns true if a limit has no state for an identity: nothing used, changed, blocked or listed. */
function isUnused(state: LimitState): boolean {
  const { used, blockedUntil, override, modeOverride, listed, unread, offences = 0, usage } = state;
  if (usage !== undefined && usage.days.length > 0) return false;
  const isSet = override?.key !== undefined || modeOverride?.key !== undefined || listed !== undefined;
  return used === 0 && blockedUntil === null && !isSet && unread === undefined && offences === 0;
}

function Summary({ limits }: { limits: readonly LimitState[] }): JSX.Element | null {
  const blocked = limits.filter(({ blockedUntil }) => blockedUntil !== null).length;
  const empty = limits.filter((state) => state.blockedUntil === null && state.remaining === 0).length;
  return (
    <span class="buttons">
      {blocked > 0 && <Badge tone="danger">blocked by {plural(blocked, 'limit')}</Badge>}
      {empty > 0 && <Badge tone="warning">nothing left of {plural(empty, 'limit')}</Badge>}
      {blocked + empty === 0 && limits.length > 0 && limits.every(({ unread }) => unread === undefined) && (
        <Badge tone="good">free</Badge>
      )}
    </span>
  );
}

/** Looks up the displayed identity again to update it. */
async function refresh(): Promise<void> {
  const { identity, found } = subject.value;
  if (!found || document.hidden || connection.value.state !== 'live') return;
  const { limits } = await post<Lookup>('api/lookup', { identity }).catch(() => ({ limits: [] }));
  // Another identity may have been looked up in the meantime.
  if (subject.value.found === found) limits.forEach(replace);
}

function replace(state: LimitState): void {
  const last = subject.value;
  if (!last.found) return;
  const limits = last.found.limits.map((one) => (one.limit === state.limit ? state : one));
  subject.value = { ...last, found: { ...last.found, limits } };
}

/** Blocked limits first, then the most used ones. */
function byUrgency(one: LimitState, other: LimitState): number {
  return urgency(other) - urgency(one) || one.limit.localeCompare(other.limit);
}

function urgency({ blockedUntil, used, quota }: LimitState): number {
  if (blockedUntil !== null) return 2;
  return used === null || quota === 0 ? 0 : used / quota;
}
