import type { JSX } from 'preact';
import { leftAt } from './refill.js';
import type { Reading } from './session.js';

interface Props {
  readonly limit: string;
  readonly reading: Reading | undefined;
  readonly now: number;
}

/** What is left of one limit: what the last answer told, and what has come back since. */
export function LimitBar({ limit, reading, now }: Props): JSX.Element {
  if (reading === undefined) {
    return (
      <div class="bar unknown">
        <span class="limit">{limit}</span>
        <span class="soft">no request yet</span>
        <div class="track" />
      </div>
    );
  }
  const { left, quota = left, until, refused } = reading;
  const amount = leftAt(reading, now);
  const wait = Math.max(0, Math.ceil((until - now) / 1000));
  const current = Math.floor(amount);
  return (
    <div class={wait > 0 && refused ? 'bar refusing' : 'bar'}>
      <span class="limit">{limit}</span>
      <span class="amount">
        <strong>{current}</strong> of {quota} left
        {wait > 0 && !refused && <span class="soft"> · all again in {showSeconds(wait)}</span>}
        {wait > 0 && refused && <span class="wait"> · refuses for {showSeconds(wait)}</span>}
        {wait === 0 && refused && <span class="soft"> · fits again</span>}
      </span>
      <div
        class="track"
        role="meter"
        aria-label={`Units left of ${limit}`}
        aria-valuemin={0}
        aria-valuemax={quota}
        aria-valuenow={current}
      >
        <div class="fill" style={{ inlineSize: `${quota === 0 ? 0 : (amount / quota) * 100}%` }} />
      </div>
    </div>
  );
}

/** Seconds, in the unit that tells most in few letters. */
export function showSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
