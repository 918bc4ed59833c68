import type { ComponentChildren, JSX } from 'preact';
import type { CandidateInfo, RateInfo } from '../../api.js';
import { moment, percent, relative, whole } from '../data/format.js';
import { session } from '../data/session.js';
import { useNow, useStore } from '../data/store.js';
import { hrefOf } from '../data/route.js';
import { type Action, ActionButtons } from '../parts/dialog.js';
import { Badge, Bar, ModeBadge } from '../parts/small.js';
import { fullRate } from './patch-fields.js';
import { rateActions } from './rate-actions.js';

interface Props {
  readonly id: string;
  readonly rate: RateInfo;
  /** True on the page of the limit itself, which already has its name. */
  readonly isAlone?: boolean;
  onAct: (action: Action) => void;
  onChanged: () => void;
}

/** A limit's rate and mode: as configured, currently, and in its candidate. */
export function RateCard({ id, rate, isAlone = false, onAct, onChanged }: Props): JSX.Element {
  const { canWrite } = useStore(session);
  const { limit, configured, current, mode, candidate } = rate;
  return (
    <section class="panel state" id={id} aria-labelledby={`${id}-title`}>
      <header>
        <div class="title">
          <h2 id={`${id}-title`}>{isAlone ? 'Rate and mode' : <a href={hrefOf('limit', limit)}>{limit}</a>}</h2>
          {mode.mode !== 'enforce' && <ModeBadge mode={mode.mode} />}
          {current.source !== 'configured' && (
            <Badge tone="accent">{current.source === 'policy' ? 'by policy' : 'changed'}</Badge>
          )}
          {candidate && <Badge tone="plum">has a candidate</Badge>}
        </div>
        <p class="mono">{rate.algo}</p>
      </header>
      <div class="body one">
        <div class="versions">
          <Version title="Configured" rate={fullRate(configured.rate, configured.options)}>
            {configured.mode}
          </Version>
          <Version title="Holds now" rate={fullRate(current.rate, current.options)}>
            <Origin of={current} />
          </Version>
          <Version title="Mode" rate={mode.mode}>
            <Origin of={mode} />
          </Version>
          <div>
            <span class="soft small">Candidate</span>
            {candidate ? (
              <Candidate limit={limit} candidate={candidate} />
            ) : (
              <span class="soft small">none{canWrite ? ': preview a rate to see what it would refuse' : ''}</span>
            )}
          </div>
        </div>
      </div>
      {canWrite && <ActionButtons title={`Change ${limit}`} offered={rateActions(rate, onChanged)} onAct={onAct} />}
    </section>
  );
}

function Version({ title, rate, children }: { title: string; rate: string; children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <span class="soft small">{title}</span>
      <span class="rate">{rate}</span>
      <span class="soft small breakable">{children}</span>
    </div>
  );
}

/** Why a rate or a mode applies, and until when. */
function Origin({ of: { source, override } }: { of: Pick<RateInfo['current'], 'source' | 'override'> }): JSX.Element {
  const now = useNow();
  if (!override) return <>{source === 'policy' ? 'as the policy says' : 'as configured'}</>;
  const { expiresAt, by, reason } = override;
  return (
    <>
      {expiresAt === null ? 'until it is cleared' : `until ${moment(expiresAt)} (${relative(expiresAt, now)})`}
      {by !== undefined && `, by ${by}`}
      {reason !== undefined && `: ${reason}`}
    </>
  );
}

/** The rejections of the candidate, next to those of the limit. */
function Candidate({
  limit,
  candidate: { rate, options, lastHour },
}: {
  limit: string;
  candidate: CandidateInfo;
}): JSX.Element {
  const { decisions, refused, candidateAsked, candidateRefused } = lastHour;
  return (
    <>
      <span class="rate">{fullRate(rate, options)}</span>
      {decisions === 0 ? (
        <span class="soft small">nothing was counted in the last hour</span>
      ) : (
        <div class="compare">
          <div class="share small">
            <span>Would have refused</span>
            <span class="numbers">
              {candidateAsked === 0
                ? 'no decision yet'
                : `${whole(candidateRefused)} of ${whole(candidateAsked)} (${percent(candidateRefused, candidateAsked)})`}
            </span>
            <Bar
              label={`Refusals of the candidate of ${limit}`}
              share={share(candidateRefused, candidateAsked)}
              tone="other"
            />
          </div>
          <div class="share small">
            <span>The limit refused</span>
            <span class="numbers">
              {whole(refused)} of {whole(decisions)} ({percent(refused, decisions)})
            </span>
            <Bar label={`What ${limit} refused`} share={share(refused, decisions)} tone="full" />
          </div>
          <span class="soft small">decisions in the last hour; those of the candidate since it was added</span>
        </div>
      )}
    </>
  );
}

function share(count: number, of: number): number {
  return of === 0 ? 0 : count / of;
}
