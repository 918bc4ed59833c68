import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { mostInAnInterval, type Settings } from '../simulation/settings.js';
import type { Palette } from './palette.js';
import { RunChart, type Shown } from './run-chart.js';
import { behaviour, nounOf, showTime } from './words.js';

interface Props {
  readonly shown: Omit<Shown, 'palette'>;
  readonly palette: Palette | undefined;
  readonly settings: Settings;
  readonly group: string;
  readonly level: number;
}

/** What one algorithm did: its numbers and its chart. */
export function RunCard({ shown, palette, settings, group, level }: Props): JSX.Element {
  const { run } = shown;
  const { rate, interval, limit } = settings;
  const noun = nounOf(interval);
  const Heading = `h${level}` as 'h3';
  const most = mostInAnInterval(run.algorithm, settings);
  const worst = run.worst?.units ?? 0;
  const exceeds = worst > rate && run.algorithm !== 'concurrency';
  const readout = useRef<HTMLParagraphElement>(null);
  return (
    <article class="card" data-algorithm={run.algorithm}>
      <header>
        <Heading class="name">{run.algorithm}</Heading>
        <p class="does">{behaviour(run.algorithm, settings)}</p>
      </header>
      <dl class="numbers">
        <div class="allowed">
          <dt>allowed</dt>
          <dd data-number="allowed">{run.allowed}</dd>
        </div>
        <div class="refused">
          <dt>refused</dt>
          <dd data-number="refused">{run.refused}</dd>
        </div>
        <div class={exceeds ? 'worst exceeds' : 'worst'}>
          <dt>worst {noun}</dt>
          <dd>
            <span data-number="worst">{worst}</span>
            <small>{exceeds ? ` ${(worst / rate).toFixed(1)}× the rate` : ''}</small>
          </dd>
        </div>
      </dl>
      <Chart shown={shown} palette={palette} settings={settings} group={group} readout={readout} />
      <footer>
        <p>
          {most === undefined
            ? `At once: ${run.heldMost}, never more than ${limit}`
            : `Never more than ${most} in any ${noun}`}
        </p>
        <p class="readout" ref={readout} aria-hidden="true" />
      </footer>
    </article>
  );
}

interface ChartProps extends Omit<Props, 'level'> {
  readonly readout: { readonly current: HTMLParagraphElement | null };
}

/** The chart says nothing that the numbers beside it do not. */
function Chart({ shown, palette, settings, group, readout }: ChartProps): JSX.Element {
  const target = useRef<HTMLDivElement>(null);
  const chart = useRef<RunChart>(undefined);
  const interval = useRef(settings.interval);
  interval.current = settings.interval;
  useLayoutEffect(() => {
    if (palette === undefined) return;
    if (chart.current !== undefined) return chart.current.update({ ...shown, palette });
    chart.current = new RunChart(target.current!, { ...shown, palette }, group, (at, left) => {
      const text = at === undefined ? '' : `${showTime(at, interval.current)}: ${left} left`;
      if (readout.current !== null) readout.current.textContent = text;
    });
  }, [shown, palette]);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => chart.current?.resize(Math.floor(entry!.contentRect.width)));
    observer.observe(target.current!);
    return () => {
      observer.disconnect();
      chart.current?.destroy();
    };
  }, []);
  return <div class="chart" ref={target} aria-hidden="true" />;
}
