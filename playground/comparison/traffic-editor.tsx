import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Interval } from '../simulation/settings.js';
import { COLUMNS, SPAN } from '../simulation/traffic.js';
import type { Palette } from './palette.js';
import { labelFont, PLOT_LEFT, PLOT_RIGHT } from './run-chart.js';
import { showTime, unitOf } from './words.js';

interface Props {
  /** How many requests come in each column. */
  readonly columns: readonly number[];
  readonly rate: number;
  readonly interval: Interval;
  /** How far the simulation is played, in intervals; nothing if it is not. */
  readonly at: number | undefined;
  readonly palette: Palette | undefined;
  readonly onDraw: (columns: number[]) => void;
}

const HEIGHT = 120;
/** What stands below the bars. */
const AXIS = 20;
const TOP = 4;
const PLOT = HEIGHT - TOP - AXIS;
/** Changes of a column by a key. */
const STEPS: Readonly<Record<string, number>> = { ArrowUp: 1, ArrowDown: -1, PageUp: 5, PageDown: -5 };
const MOVES: Readonly<Record<string, number>> = {
  ArrowRight: 1,
  ArrowLeft: -1,
  Home: -COLUMNS,
  End: COLUMNS,
};

/** The traffic as columns, which can be drawn over: with a pointer, or column by column with the keyboard. */
export function TrafficEditor({ columns, rate, interval, at, palette, onDraw }: Props): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const [column, setColumn] = useState<number>();
  /** The column that the pointer drew last. */
  const last = useRef<{ column: number; count: number }>(undefined);
  const most = Math.max(4, rate, ...columns);
  const current = column ?? 0;

  useLayoutEffect(() => {
    if (palette !== undefined) paint(canvas.current!, { width, columns, most, chosen: column, interval, at, palette });
  }, [columns, most, width, column, interval, at, palette]);

  const change = (changed: ReadonlyMap<number, number>) =>
    onDraw(columns.map((count, index) => changed.get(index) ?? count));

  const drawTo = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const plot = box.width - PLOT_LEFT - PLOT_RIGHT;
    const at = clamp(Math.floor(((event.clientX - box.left - PLOT_LEFT) / plot) * COLUMNS), 0, COLUMNS - 1);
    const count = clamp(Math.round((1 - (event.clientY - box.top - TOP) / PLOT) * most), 0, most);
    // A pointer that is quick skips columns.
    const from = last.current ?? { column: at, count };
    const changed = new Map<number, number>();
    for (let each = from.column; ; each += Math.sign(at - from.column)) {
      const share = at === from.column ? 1 : (each - from.column) / (at - from.column);
      changed.set(each, Math.round(from.count + share * (count - from.count)));
      if (each === at) break;
    }
    last.current = { column: at, count };
    change(changed);
  };

  const press = (event: KeyboardEvent) => {
    const move = MOVES[event.key];
    const step = event.key === 'Delete' || event.key === 'Backspace' ? -most : STEPS[event.key];
    if (move !== undefined) setColumn(clamp(current + move, 0, COLUMNS - 1));
    else if (step !== undefined) change(new Map([[current, clamp(columns[current]! + step, 0, most)]]));
    else return;
    event.preventDefault();
  };

  const time = showTime((current * SPAN) / COLUMNS, interval);
  return (
    <canvas
      class="traffic"
      ref={canvas}
      height={HEIGHT}
      tabIndex={0}
      role="slider"
      aria-label="Traffic: draw it, column by column. Left and right choose the column, up and down change it"
      aria-orientation="vertical"
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={columns[current]}
      aria-valuetext={`At ${time}: ${columns[current]} ${columns[current] === 1 ? 'request' : 'requests'}`}
      onFocus={() => canvas.current!.matches(':focus-visible') && setColumn(current)}
      onBlur={() => setColumn(undefined)}
      onKeyDown={press}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        canvas.current!.setPointerCapture(event.pointerId);
        last.current = undefined;
        drawTo(event);
      }}
      onPointerMove={(event) => {
        if (canvas.current!.hasPointerCapture(event.pointerId)) drawTo(event);
      }}
    />
  );
}

function useWidth(canvas: { readonly current: HTMLCanvasElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(canvas.current!);
    return () => observer.disconnect();
  }, []);
  return width;
}

interface Painting {
  readonly width: number;
  readonly columns: readonly number[];
  /** The count of the highest column. */
  readonly most: number;
  /** The column that keys change. */
  readonly chosen: number | undefined;
  readonly interval: Interval;
  readonly at: number | undefined;
  readonly palette: Palette;
}

function paint(canvas: HTMLCanvasElement, painting: Painting): void {
  const { width, columns, most, chosen, interval, at, palette } = painting;
  const scale = devicePixelRatio;
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.round(HEIGHT * scale);
  const context = canvas.getContext('2d')!;
  context.scale(scale, scale);
  const x = (share: number) => PLOT_LEFT + share * (width - PLOT_LEFT - PLOT_RIGHT);
  const bottom = TOP + PLOT;
  context.font = labelFont(palette);
  context.textAlign = 'center';
  for (let edge = 0; edge <= SPAN; edge++) {
    const left = Math.round(x(edge / SPAN));
    const isWithin = edge > 0 && edge < SPAN;
    context.fillStyle = palette.edge;
    for (let y = isWithin ? TOP : bottom; y < bottom; y += 6) context.fillRect(left, y, 1, 3);
    context.fillStyle = palette.muted;
    context.fillText(edge === 0 ? '0' : `${edge} ${unitOf(interval)}`, left, HEIGHT - 4);
  }
  context.textAlign = 'right';
  context.fillText(String(most), PLOT_LEFT - 6, TOP + 9);
  context.fillText('0', PLOT_LEFT - 6, bottom);
  context.fillStyle = palette.line;
  context.fillRect(x(0), bottom, x(1) - x(0), 1);
  for (const [column, count] of columns.entries()) {
    const left = Math.round(x(column / COLUMNS));
    const right = Math.round(x((column + 1) / COLUMNS));
    const height = count === 0 ? 0 : Math.max(2, (count / most) * PLOT);
    context.fillStyle = palette.ink;
    context.fillRect(left + 1, bottom - height, Math.max(1, right - left - 2), height);
    if (column !== chosen) continue;
    context.fillStyle = palette.worst;
    context.fillRect(left, bottom, right - left, 4);
    context.globalAlpha = 0.18;
    context.fillRect(left, TOP, right - left, PLOT);
    context.globalAlpha = 1;
  }
  if (at === undefined) return;
  context.fillStyle = palette.left;
  context.fillRect(x(at / SPAN), TOP, 1.5, PLOT);
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, value));
}
