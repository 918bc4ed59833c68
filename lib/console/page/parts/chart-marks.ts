import type uPlot from 'uplot';
import { colour } from '../data/theme.js';

/** A moment that a chart marks. */
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
