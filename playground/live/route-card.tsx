import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { LimitBar, showSeconds } from './limit-bar.js';
import { needsUser, type Route } from './route.js';
import type { Session } from './session.js';

interface Props {
  readonly route: Route;
  readonly session: Session;
  readonly now: number;
  readonly onBurst: (route: Route, count: number) => void;
}

const MOST_BURST = 60;
const MOST_FLOW = 20;

/** A route: what sends requests to it, and what is left of its limits. */
export function RouteCard({ route, session, now, onBurst }: Props): JSX.Element {
  const [count, setCount] = useState(route.requests);
  const [perSecond, setPerSecond] = useState(2);
  const id = useId();
  const flow = session.flowOf(route);
  const { sent, allowed, refused, other, limits, refusal } = session.recordOf(route);
  // A limit that the app asks in its code tells no headers.
  const isTold = limits.some((limit) => session.readings.get(limit)?.refused);
  const wait = isTold ? 0 : Math.ceil(((refusal?.retryAt ?? 0) - now) / 1000);
  const changeFlow = (next: number) => {
    setPerSecond(next);
    if (flow > 0) session.flow(route, next);
  };
  return (
    <article class="route" aria-labelledby={id}>
      <header>
        <h3 id={id}>
          <span class="method">{route.method}</span> {route.path}
        </h3>
        {needsUser(route) && <span class="tag">needs a user</span>}
      </header>
      <p class="soft">{route.limit}</p>
      <pre class="code" tabIndex={0} aria-label={`Code that limits ${route.path}`}>
        <code>{route.code}</code>
      </pre>
      <p class="docs">
        <a href={route.docs}>Docs: {route.docs.replace(/^.*\/|\.md$/g, '').replaceAll('-', ' ')}</a>
      </p>
      <div class="senders">
        <button type="button" onClick={() => onBurst(route, 1)}>
          Send one
        </button>
        <div class="sender">
          <button type="button" onClick={() => onBurst(route, count)}>
            Send {count}
          </button>
          <Range
            label={`Requests of a burst, ${route.path}`}
            value={count}
            min={2}
            max={MOST_BURST}
            onInput={setCount}
          />
        </div>
        <div class="sender">
          <button type="button" aria-pressed={flow > 0} onClick={() => session.flow(route, flow > 0 ? 0 : perSecond)}>
            {perSecond} a second
          </button>
          <Range label={`Requests per second, ${route.path}`} value={perSecond} max={MOST_FLOW} onInput={changeFlow} />
        </div>
      </div>
      <div class="bars">
        {limits.map((limit) => (
          <LimitBar key={limit} limit={limit} reading={session.readings.get(limit)} now={now} />
        ))}
        {limits.length === 0 && <p class="soft">Send a request to see what is left.</p>}
      </div>
      <footer>
        <p class="tally">
          {sent > 0 && (
            <>
              <span class="allowed">{allowed} allowed</span>
              <span class="refused">{refused} refused</span>
              {other > 0 && <span>{other} other</span>}
            </>
          )}
        </p>
        {wait > 0 && <p class="wait">Free again in {showSeconds(wait)}</p>}
      </footer>
    </article>
  );
}

interface RangeProps {
  readonly label: string;
  readonly value: number;
  readonly min?: number;
  readonly max: number;
  readonly onInput: (value: number) => void;
}

function Range({ label, value, min = 1, max, onInput }: RangeProps): JSX.Element {
  return (
    <input
      type="range"
      aria-label={label}
      min={min}
      max={max}
      value={value}
      style={{ '--filled': `${((value - min) / (max - min)) * 100}%` }}
      onInput={({ currentTarget }) => onInput(Number(currentTarget.value))}
    />
  );
}
