import type { JSX } from 'preact';
import { type Answer, isRefusal } from './answer.js';
import { showSeconds } from './limit-bar.js';

interface Props {
  readonly answers: readonly Answer[];
  readonly now: number;
  readonly onClear: () => void;
}

/** The headers that limits write; the others stand behind them. */
const OF_LIMITS = /^(ratelimit|x-ratelimit|retry-after)/;

/** Every answer, the newest first. */
export function AnswerLog({ answers, now, onClear }: Props): JSX.Element {
  return (
    <section class="log" aria-labelledby="answers">
      <header>
        <h3 id="answers">Answers</h3>
        <button type="button" class="quiet" disabled={answers.length === 0} onClick={onClear}>
          Clear
        </button>
      </header>
      {answers.length === 0 ? (
        <p class="soft none">Each response appears here, with its status and headers.</p>
      ) : (
        <ol class="answers" tabIndex={0} aria-label="Responses, newest first">
          {answers.map((answer) => (
            <Row key={answer.id} answer={answer} now={now} />
          ))}
        </ol>
      )}
    </section>
  );
}

function Row({ answer, now }: { readonly answer: Answer; readonly now: number }): JSX.Element {
  const { route, status, took, headers, body, retryAt, refusedBy } = answer;
  const wait = Math.ceil(((retryAt ?? 0) - now) / 1000);
  const sorted = headers.toSorted(([one], [other]) => Number(OF_LIMITS.test(other)) - Number(OF_LIMITS.test(one)));
  return (
    <li>
      <details>
        <summary>
          <span class={`status ${kindOf(answer)}`}>{status === 0 ? 'none' : status}</span>
          <span class="what">
            {route.method} {route.path}
          </span>
          <span class="soft">{Math.round(took)} ms</span>
          {isRefusal(answer) && (
            <span class="why">
              {refusedBy.length > 0 && `by ${refusedBy.join(', ')}. `}
              {retryAt === undefined ? 'Never fits' : wait > 0 ? `Retry in ${showSeconds(wait)}` : 'Fits again'}
            </span>
          )}
        </summary>
        <dl>
          {sorted.map(([name, value]) => (
            <div key={name} class={OF_LIMITS.test(name) ? 'of-limits' : ''}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        {body !== '' && <pre>{body}</pre>}
      </details>
    </li>
  );
}

function kindOf(answer: Answer): string {
  if (isRefusal(answer)) return 'refused';
  return answer.status >= 200 && answer.status < 400 ? 'allowed' : 'other';
}
