import type uPlot from 'uplot';
import { clock, timeAs } from '../data/format.js';
import { colour } from '../data/theme.js';

export interface ChartMark {
  /** In milliseconds since the epoch. */
  readonly at: number;
  readonly kind: 'change' | 'start';
  readonly label: string;
}

const COLOURS = { change: '--plum', start: '--accent' } as const;

/** Draws a dashed line at each mark. */
export function drawMarks(plot: uPlot, marks: readonly ChartMark[]): void {
  const { ctx, bbox, scales } = plot;
  const { min, max } = scales['x'] ?? {};
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at, kind } of marks) {
    const second = at / 1_000;
    if (min == null || max == null || second < min || second > max) continue;
    const x = Math.round(plot.valToPos(second, 'x', true));
    ctx.strokeStyle = colour(COLOURS[kind]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

export interface ChartLine {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** The name of its colour, such as `allowed` for `--chart-allowed`. */
  readonly colour: 'allowed' | 'refused' | 'near' | 'other';
  readonly filled?: boolean;
  readonly dashed?: boolean;
}

const DAY_SECONDS = 86_400;

/** Times of the day; dates where a day begins, if there are several. */
function times(_plot: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] {
  if (step < 60) return splits.map((second) => clock(second * 1_000));
  const days = splits.map((second) => timeAs('day', second * 1_000));
  const isLong = splits.at(-1)! - splits[0]! >= DAY_SECONDS;
  return splits.map((second, at) =>
    isLong && (step >= DAY_SECONDS || days[at] !== days[at - 1]) ? days[at]! : timeAs('minutes', second * 1_000),
  );
}

export function axesOf(format: (value: number) => string): uPlot.Axis[] {
  const stroke = colour('--chart-axis');
  const grid = { stroke: colour('--chart-grid'), width: 1 };
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return [
    { stroke, font, grid: { show: false }, ticks: { show: false }, values: times, space: 64, size: 26 },
    {
      stroke,
      font,
      grid,
      ticks: { show: false },
      space: 36,
      gap: 6,
      values: (_plot, splits) => splits.map((value) => (value === 0 ? '0' : format(value).replace(/\.0+(?=\s|$)/, ''))),
      size: (_plot, values) => 14 + 7 * Math.max(3, ...(values ?? []).map((text) => text.length)),
    },
  ];
}

export function drawnSeries(line: ChartLine): uPlot.Series {
  return {
    label: line.label,
    stroke: colour(`--chart-${line.colour}`),
    width: line.dashed ? 1.75 : 1.5,
    points: { show: false },
    spanGaps: true,
    ...(line.filled && { fill: colour(`--chart-${line.colour}-fill`) }),
    ...(line.dashed && { dash: [5, 4] }),
  };
}
