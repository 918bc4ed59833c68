import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { clock, moment, nameOfZone } from '../data/format.js';
import { useStore } from '../data/store.js';
import { colours } from '../data/theme.js';
import { axesOf, type ChartLine, type ChartMark, drawMarks, drawnSeries } from './chart-options.js';

/** The lines of a chart with their mean and maximum, which also makes them accessible without the chart. */
function Legend({ lines, format }: { lines: readonly ChartLine[]; format: (value: number) => string }): JSX.Element {
  return (
    <ul class="legend">
      {lines.map((line) => {
        const known = line.values.filter((value) => value !== null);
        const mean = known.length === 0 ? 0 : known.reduce((total, value) => total + value, 0) / known.length;
        const peak = known.reduce((most, value) => Math.max(most, value), 0);
        return (
          <li key={line.label}>
            <span class={`key ${line.colour} ${line.dashed ? 'dashed' : line.filled ? '' : 'line'}`} />
            {line.label}
            {known.length > 0 && (
              <span>
                mean <span class="numbers">{format(mean)}</span>, peak <span class="numbers">{format(peak)}</span>
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

interface Props {
  /** A description for screen readers. */
  readonly label: string;
  /** In milliseconds since the epoch. */
  readonly times: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly format: (value: number) => string;
  readonly height: number;
  readonly marks?: readonly ChartMark[];
  /** Displays the range of times that the user has selected. */
  onZoom?: (from: number, to: number) => void;
}

/** The share of the time range that remains when a key zooms. */
const ZOOM = 0.5;
const DAY_MS = 86_400_000;
const NO_MARKS: readonly ChartMark[] = [];

/** Numbers over time. Arrow keys also move the cursor, and plus zooms in on it. */
export function Chart({ label, times, lines, format, height, marks = NO_MARKS, onZoom }: Props): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [at, setAt] = useState<{ index: number; left: number } | undefined>();
  const [said, setSaid] = useState('');
  const drawn = useStore(colours);
  const structure = lines.map((line) => line.label).join('|');
  const marked = useRef(marks);
  marked.current = marks;
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const data = [times.map((time) => time / 1_000), ...lines.map(({ values }) => values)] as uPlot.AlignedData;

  useEffect(() => {
    const element = place.current!;
    const chart = new uPlot(
      {
        width: Math.max(element.clientWidth, 100),
        height,
        // Days begin at midnight in the chosen time zone.
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), nameOfZone()),
        padding: [8, 30, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: onZoom !== undefined, y: false, setScale: false }, points: { size: 7 } },
        scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.08 : 1] } },
        axes: axesOf(format),
        series: [{}, ...lines.map(drawnSeries)],
        hooks: {
          draw: [(chart) => drawMarks(chart, marked.current)],
          setSelect: [
            (chart) => {
              const { left, width: selected } = chart.select;
              if (selected < 4) return;
              zoom.current?.(chart.posToVal(left, 'x') * 1_000, chart.posToVal(left + selected, 'x') * 1_000);
              chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            },
          ],
          setCursor: [
            ({ cursor: { idx, left } }) => {
              setAt(typeof idx === 'number' && left !== undefined && left >= 0 ? { index: idx, left } : undefined);
            },
          ],
        },
      },
      data,
      element,
    );
    plot.current = chart;
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== chart.width) chart.setSize({ width, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      plot.current = undefined;
    };
    // `structure` represents the lines, whose values change all the time.
  }, [structure, drawn, height]);

  useEffect(() => plot.current?.setData(data), [times, lines, marks]);

  useLayoutEffect(() => {
    const axis = (plot.current?.bbox.left ?? 0) / devicePixelRatio;
    if (at && tip.current) moveTip(tip.current, at.left + axis);
  }, [at]);

  const step = (event: KeyboardEvent): void => {
    const chart = plot.current;
    if (event.key === '+' && chart && onZoom && times.length > 4) {
      event.preventDefault();
      const [first, last] = [times[0]!, times.at(-1)!];
      const centre = times[chart.cursor.idx ?? times.length - 1]!;
      const half = (ZOOM * (last - first)) / 2;
      const from = Math.max(first, Math.min(centre - half, last - 2 * half));
      onZoom(from, from + 2 * half);
      return;
    }
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (!chart || times.length === 0 || (by === undefined && event.key !== 'Home' && event.key !== 'End')) return;
    event.preventDefault();
    const last = times.length - 1;
    const from = chart.cursor.idx ?? last + 1;
    const index = event.key === 'Home' ? 0 : event.key === 'End' ? last : Math.min(last, Math.max(0, from + (by ?? 0)));
    chart.setCursor({ left: chart.valToPos(times[index]! / 1_000, 'x'), top: 0 });
    setSaid([stepTime(times, index), ...lines.map((line) => `${line.label} ${shown(line, index, format)}`)].join(', '));
  };

  return (
    <div class="chart">
      <div
        class="plot"
        ref={place}
        role="application"
        aria-roledescription="chart"
        aria-label={`${label}. Arrow keys read its values${onZoom ? ', plus zooms in' : ''}.`}
        tabIndex={0}
        onKeyDown={step}
        onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
      />
      <div class="tip" hidden={!at} ref={tip}>
        {at && times[at.index] !== undefined && (
          <>
            <div class="soft numbers">{moment(times[at.index]!)}</div>
            {lines.map((line) => (
              <div class="row" key={line.label}>
                <span class={`key ${line.colour}`} />
                {line.label}
                <b>{shown(line, at.index, format)}</b>
              </div>
            ))}
          </>
        )}
      </div>
      <span class="hidden-text" aria-live="polite">
        {said}
      </span>
      <Legend lines={lines} format={format} />
    </div>
  );
}

function shown(line: ChartLine, index: number, format: (value: number) => string): string {
  const value = line.values[index];
  return value === null || value === undefined ? '–' : format(value);
}

/** The time of a step; with the date if the chart covers several days. */
function stepTime(times: readonly number[], index: number): string {
  const isLong = times.at(-1)! - times[0]! > DAY_MS;
  return isLong ? moment(times[index]!) : clock(times[index]!);
}

/** Places the tip next to the cursor, on the side with room. */
function moveTip(tip: HTMLElement, left: number): void {
  const room = (tip.parentElement?.clientWidth ?? 0) - tip.offsetWidth;
  const wanted = left + 14 <= room ? left + 14 : left - tip.offsetWidth - 14;
  tip.style.transform = `translate(${Math.max(0, Math.min(wanted, room))}px, 8px)`;
}
