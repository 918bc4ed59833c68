import type { JSX } from 'preact';
import { type Second, SECONDS } from './session.js';

interface Props {
  readonly seconds: readonly Second[];
  readonly now: number;
}

const HEIGHT = 64;

/** Answers of each second of the last minute: what was allowed above a line, what was refused below it. */
export function ThroughputChart({ seconds, now }: Props): JSX.Element {
  const current = Math.floor(now / 1000);
  const shown = seconds.filter(({ at }) => at > current - SECONDS);
  const most = Math.max(1, ...shown.flatMap(({ allowed, refused }) => [allowed, refused]));
  const sum = (count: (second: Second) => number) => shown.reduce((total, second) => total + count(second), 0);
  const unit = HEIGHT / 2 / most;
  return (
    <section class="throughput" aria-labelledby="last-minute">
      <header>
        <h3 id="last-minute">Last minute</h3>
        <p class="tally">
          <span class="allowed">{sum(({ allowed }) => allowed)} answered</span>
          <span class="refused">{sum(({ refused }) => refused)} refused</span>
        </p>
      </header>
      <svg viewBox={`0 0 ${SECONDS} ${HEIGHT}`} preserveAspectRatio="none" height={HEIGHT} aria-hidden="true">
        <line x1={0} x2={SECONDS} y1={HEIGHT / 2} y2={HEIGHT / 2} class="base" />
        {shown.map(({ at, allowed, refused }) => {
          const x = SECONDS - 1 - (current - at);
          return (
            <g key={at}>
              <rect class="allowed" x={x + 0.1} width={0.8} y={HEIGHT / 2 - allowed * unit} height={allowed * unit} />
              <rect class="refused" x={x + 0.1} width={0.8} y={HEIGHT / 2} height={refused * unit} />
            </g>
          );
        })}
      </svg>
    </section>
  );
}
