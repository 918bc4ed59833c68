import type { JSX } from 'preact';
import { useEffect, useMemo, useReducer, useState } from 'preact/hooks';
import { AnswerLog } from './answer-log.js';
import { RouteCard } from './route-card.js';
import { nameOf, type Route, type User } from './route.js';
import { Session } from './session.js';
import { ThroughputChart } from './throughput-chart.js';

/** How often countdowns are drawn anew, in milliseconds. */
const TICK = 250;

const PLANS = ['free', 'pro', 'partner'];

/** The routes of the app, to be tried, and what they answered. */
export function Live({ routes }: { readonly routes: readonly Route[] }): JSX.Element {
  const [user, setUser] = useState<User>({ id: 'ada', plan: 'free' });
  const [said, say] = useState('');
  const [all, showAll] = useState(false);
  const others = routes.filter(({ isTelling }) => isTelling !== true);
  const session = useMemo(() => new Session(user), []);
  const now = useChanges(session);
  const become = (changed: Partial<User>) => {
    const next = { ...user, ...changed };
    setUser(next);
    session.become(next);
  };
  const burst = async (route: Route, count: number) => {
    const answers = await session.burst(route, count);
    const refused = answers.filter(({ status }) => status === 429 || status === 503).length;
    say(`${nameOf(route)}: ${count} sent, ${refused} refused`);
  };
  return (
    <div class="live">
      <div class="who">
        <fieldset>
          <legend>Requests come from</legend>
          <label>
            User
            <input
              value={user.id}
              maxLength={40}
              spellcheck={false}
              autocomplete="off"
              // Headers take no other letters.
              onInput={({ currentTarget }) => become({ id: currentTarget.value.replaceAll(/[^\x21-\x7e]/g, '') })}
            />
          </label>
          <label>
            Plan
            <select value={user.plan} onChange={({ currentTarget }) => become({ plan: currentTarget.value })}>
              {PLANS.map((plan) => (
                <option key={plan}>{plan}</option>
              ))}
            </select>
          </label>
        </fieldset>
        <button type="button" class="quiet" disabled={!session.isFlowing} onClick={() => session.endFlows()}>
          Stop all flows
        </button>
      </div>
      <p class="unseen" role="status">
        {said}
      </p>
      <div class="columns">
        <div>
          <div class="routes">
            {[...routes.filter(({ isTelling }) => isTelling), ...(all ? others : [])].map((route) => (
              <RouteCard
                key={nameOf(route)}
                route={route}
                session={session}
                now={now}
                onBurst={(...asked) => void burst(...asked)}
              />
            ))}
          </div>
          {!all && (
            <button type="button" class="more" onClick={() => showAll(true)}>
              Show {others.length} more {others.length === 1 ? 'route' : 'routes'}
            </button>
          )}
        </div>
        <div class="aside">
          <ThroughputChart seconds={session.seconds} now={now} />
          <AnswerLog answers={session.answers} now={now} onClear={() => session.clearLog()} />
        </div>
      </div>
    </div>
  );
}

/** Draws anew when the session changes, and now and then, for what counts down. Gives the time, in milliseconds. */
function useChanges(session: Session): number {
  const [, draw] = useReducer<number, void>((count) => count + 1, 0);
  useEffect(() => {
    const unsubscribe = session.subscribe(() => draw());
    const timer = setInterval(() => draw(), TICK);
    return () => {
      unsubscribe();
      clearInterval(timer);
    };
  }, [session]);
  return Date.now();
}
