import { legible } from '../../../engine/util/figures.js';
import type { JSX } from 'preact';
import type { LimitState } from '../../api.js';
import { amount, duration, moment, relative, whole } from '../data/format.js';
import { session } from '../data/session.js';
import { useNow, useStore } from '../data/store.js';
import { hrefOf } from '../data/route.js';
import { type Action, ActionButtons } from '../parts/dialog.js';
import { Badge, Bar, Fact, ModeBadge, Note } from '../parts/small.js';
import { HeldFacts, HistoryBars, RegionTable, UsageTable } from './state-facts.js';
import { type Context, keyActions } from './key-actions.js';

const SOURCES = {
  configured: 'as configured',
  policy: 'by the policy',
  limit: 'changed for all',
  pattern: 'changed for keys of this pattern',
  key: 'changed for this key',
} as const;

interface Props extends Omit<Context, 'blocked' | 'canWrite'> {
  onAct: (action: Action) => void;
}

/** The state of a limit for an identity, and the actions on it. */
export function StateCard({ state, info, rate, identity, onAct, onChanged }: Props): JSX.Element {
  const now = useNow();
  const { canAct, canWrite } = useStore(session);
  const { limit, quota, used, remaining, blockedUntil, override } = state;
  const blocked = blockedUntil !== null && blockedUntil > now;
  const share = used === null || quota === 0 ? 0 : used / quota;
  const unit = info?.unit;
  const id = `state-${encodeURIComponent(limit)}`;
  return (
    <section class="panel state" aria-labelledby={id}>
      <header>
        <div class="title">
          <h3 id={id}>
            <a href={hrefOf('limit', limit)}>{limit}</a>
          </h3>
          {state.mode !== 'enforce' && <ModeBadge mode={state.mode} />}
          {blocked && <Badge tone="danger">blocked</Badge>}
          {!blocked && remaining === 0 && <Badge tone="warning">nothing left</Badge>}
          {state.listed && (
            <Badge tone={state.listed.list === 'allow' ? 'good' : 'danger'}>on the {state.listed.list} list</Badge>
          )}
        </div>
        <p>
          {state.rate}, {SOURCES[state.rateSource]}
        </p>
      </header>
      <div class="body">
        <div class="quota">
          {used === null ? (
            <Note danger={state.unread !== undefined}>{state.unread ?? 'The used units are unknown.'}</Note>
          ) : (
            <>
              <p class="figure">
                {amount(used, unit)} <small>of {amount(quota, unit)} used</small>
              </p>
              <Bar
                share={share}
                tone={blocked || remaining === 0 ? 'full' : share >= 0.8 ? 'near' : undefined}
                label={`Used of ${limit}`}
              />
              <p class="soft numbers">
                {remaining === null ? '' : `${amount(remaining, unit)} left`}
                {state.credits !== undefined && `, ${amount(state.credits, unit)} of it credits`}
                {state.algo === 'adaptive' && ', in the instance that serves this page'}
              </p>
              {state.sharedBy !== undefined && <Note>Of all tenants together, by {state.sharedBy}.</Note>}
            </>
          )}
          {state.history && state.history.length > 0 && (
            <HistoryBars windows={state.history} quota={quota} unit={unit} />
          )}
        </div>
        <dl class="facts">
          {blockedUntil !== null && (
            <Fact name="Blocked until">
              {moment(blockedUntil)} <span class="soft">({relative(blockedUntil, now)})</span>
            </Fact>
          )}
          <Fact name="Free again">{freeAgain(state)}</Fact>
          <Fact name="Whole quota again">{state.resetAfterMs === null ? 'not known' : after(state.resetAfterMs)}</Fact>
          <HeldFacts state={state} unit={unit} />
          {state.offences !== undefined && state.offences > 0 && (
            <Fact name="Blocks earned">{whole(state.offences)}</Fact>
          )}
          {override && (
            <Fact name="Changed until">
              {override.expiresAt === null
                ? 'further notice'
                : `${moment(override.expiresAt)} (${relative(override.expiresAt, now)})`}
              {override.by !== undefined && <span class="soft">, by {override.by}</span>}
              {override.reason !== undefined && <span class="soft">: {override.reason}</span>}
            </Fact>
          )}
        </dl>
        {state.regions && state.regions.length > 0 && <RegionTable limit={limit} regions={state.regions} unit={unit} />}
        {state.usage && state.usage.days.length > 0 && <UsageTable limit={limit} usage={state.usage} unit={unit} />}
        <details>
          <summary>Explanation</summary>
          <pre tabIndex={0} role="group" aria-label={`Explanation of ${limit}`}>
            {state.explanation}
          </pre>
        </details>
      </div>
      {canAct && (info?.addressable ?? true) && (
        <ActionButtons
          title={`Change ${limit} for ${legible(identity)}`}
          offered={keyActions({ state, info, rate, identity, blocked, canWrite, onChanged })}
          onAct={onAct}
        />
      )}
    </section>
  );
}

function freeAgain({ retryAfterMs, remaining, listed, unread }: LimitState): string {
  if (listed?.list === 'allow') return 'always: it is on the allow list';
  if (listed?.list === 'deny') return 'never, while it is on the deny list';
  if (unread !== undefined) return 'not known';
  if (retryAfterMs === null) return remaining === 0 ? 'not known' : 'now';
  return after(retryAfterMs);
}

function after(ms: number): string {
  return ms === 0 ? 'now' : `in ${duration(ms)}`;
}
