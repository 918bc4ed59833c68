import uPlot from 'uplot';
import type { Run } from '../simulation/simulation.js';
import { COLUMNS, SPAN } from '../simulation/traffic.js';
import type { Palette } from './palette.js';

/** What a chart shows. */
export interface Shown {
  readonly run: Run;
  /** The interval in microseconds. */
  readonly interval: number;
  /** The most requests of a bar in any of the charts beside each other, which share their scale. */
  readonly tallest: number;
  readonly palette: Palette;
  /** What ends the number of an interval. */
  readonly unit: string;
}

/** How many bars there are. */
export const BARS = COLUMNS;

/** The height of the bars above the curve, and of what stands below them, in CSS pixels. */
const LANE = 64;
const GAP = 8;
const HEIGHT = 180;
/** The font of the numbers at axes. */
export function labelFont({ font }: Palette): string {
  return `11px ${font}`;
}

/** What stands beside a plot, so that the times of all of them are one below another. */
export const PLOT_LEFT = 34;
export const PLOT_RIGHT = 18;

/** Requests of each bar: those that passed, and those that were refused. */
export function barsOf({ outcomes, until }: Run, interval: number): { passed: number[]; refused: number[] } {
  const passed = Array.from({ length: BARS }, () => 0);
  const refused = [...passed];
  const width = (SPAN * interval) / BARS;
  for (const { at, delay, allowed } of outcomes) {
    const time = allowed ? at + delay : at;
    const bar = Math.floor(time / width);
    const bars = allowed ? passed : refused;
    // What leaves a queue later is not drawn.
    if (time <= until && bar < BARS) bars[bar]! += 1;
  }
  return { passed, refused };
}

/** Draws what one algorithm did: bars of what passed and was refused, and below them a curve of what was left. */
export class RunChart {
  private readonly plot: uPlot;

  constructor(
    target: HTMLElement,
    private shown: Shown,
    /** The charts of a group show the same time under the pointer. */
    group: string,
    /** Told the time under the pointer, in intervals, and what was left then; nothing where there is none. */
    pointed: (at: number | undefined, left: number | undefined) => void,
  ) {
    const options: uPlot.Options = {
      width: Math.max(1, target.clientWidth),
      height: HEIGHT,
      padding: [LANE + GAP, PLOT_RIGHT, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: group, setSeries: false }, y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, range: [0, SPAN] },
        y: { range: () => [0, this.shown.run.quota] },
      },
      axes: [
        {
          font: labelFont(shown.palette),
          size: 24,
          gap: 4,
          stroke: () => this.shown.palette.muted,
          grid: { stroke: () => this.shown.palette.edge, width: 1, dash: [3, 3] },
          ticks: { show: false },
          splits: () => Array.from({ length: SPAN + 1 }, (_, index) => index),
          values: (_, splits) => splits.map((split) => (split === 0 ? '0' : `${split} ${this.shown.unit}`)),
        },
        {
          font: labelFont(shown.palette),
          size: PLOT_LEFT,
          gap: 4,
          stroke: () => this.shown.palette.muted,
          grid: { stroke: () => this.shown.palette.line, width: 1 },
          ticks: { show: false },
          splits: () => [0, this.shown.run.quota],
        },
      ],
      series: [
        {},
        {
          stroke: () => this.shown.palette.left,
          fill: () => this.shown.palette.leftArea,
          width: 1.75,
          paths: uPlot.paths.stepped!({ align: 1 }),
          points: { show: false },
        },
      ],
      hooks: {
        drawClear: [(plot) => this.drawWorst(plot)],
        draw: [(plot) => this.drawBars(plot)],
        setCursor: [
          ({ cursor: { idx, left }, data: [times, remaining] }) =>
            idx === null || idx === undefined || left === undefined || left < 0
              ? pointed(undefined, undefined)
              : pointed(times[idx], remaining?.[idx] ?? undefined),
        ],
      },
    };
    this.plot = new uPlot(options, dataOf(shown), target);
  }

  update(shown: Shown): void {
    this.shown = shown;
    this.plot.setData(dataOf(shown));
    this.plot.redraw(false, true);
  }

  resize(width: number): void {
    if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  destroy(): void {
    this.plot.destroy();
  }

  private drawWorst(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const { run, interval, palette } = this.shown;
    if (run.worst === undefined || run.worst.units < 2) return;
    const start = Math.min(run.worst.from / interval, SPAN - 1);
    const left = plot.valToPos(start, 'x', true);
    const right = plot.valToPos(start + 1, 'x', true);
    const bottom = bbox.top + bbox.height;
    ctx.save();
    ctx.fillStyle = palette.worstArea;
    ctx.fillRect(left, 0, right - left, bottom);
    ctx.fillStyle = palette.worst;
    ctx.fillRect(left, 0, right - left, Math.round(2 * devicePixelRatio));
    ctx.restore();
  }

  /** What passed stands above a line, what was refused hangs below it. */
  private drawBars(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const { run, interval, tallest, palette } = this.shown;
    const { passed, refused } = barsOf(run, interval);
    const unit = ((LANE - 8) * devicePixelRatio) / 2 / Math.max(1, tallest);
    const middle = Math.round((LANE / 2 + 3) * devicePixelRatio);
    const gap = Math.max(1, Math.round(devicePixelRatio));
    ctx.save();
    ctx.fillStyle = palette.line;
    ctx.fillRect(bbox.left, middle, bbox.width, Math.max(1, Math.round(devicePixelRatio)));
    for (let bar = 0; bar < BARS; bar++) {
      const left = Math.round(plot.valToPos((bar * SPAN) / BARS, 'x', true));
      const width = Math.max(1, Math.round(plot.valToPos(((bar + 1) * SPAN) / BARS, 'x', true)) - left - gap);
      const height = (count: number) => (count === 0 ? 0 : Math.max(2 * gap, Math.round(count * unit)));
      ctx.fillStyle = palette.allowed;
      ctx.fillRect(left, middle - height(passed[bar]!), width, height(passed[bar]!));
      ctx.fillStyle = palette.refused;
      ctx.fillRect(left, middle + gap, width, height(refused[bar]!));
    }
    ctx.restore();
  }
}

function dataOf({ run, interval }: Shown): uPlot.AlignedData {
  return [run.curve.times.map((time) => time / interval), run.curve.remaining];
}
