import type { Report } from './report.js';
import { printable, showCount, showMs } from '../../engine/util/printable.js';

const WIDTH = 860;
const HEIGHT = 320;
const LEFT = 64;
const RIGHT = 16;
const TOP = 48;
const BOTTOM = 40;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
const TICKS = 4;
const TIMES = 4;

const STYLE = [
  'text{font:12px sans-serif;fill:#444}',
  '.title{font-size:14px;fill:#111}',
  '.grid{stroke:#ddd}',
  '.allowed{fill:#4c78a8}',
  '.refused{fill:#e4572e}',
].join('');

/** A timeline of allowed and rejected requests as SVG. */
export function chartOf(report: Report): string {
  const { allowed, refused, stepMs } = report.timeline;
  const highest = Math.max(1, ...allowed.map((count, index) => count + refused[index]!));
  const top = niceCeiling(highest);
  const title = `${showCount(report.allowed)} allowed, ${showCount(report.refused)} refused`;
  const limits = report.limits.map(({ name }) => printable(name, 128)).join(', ');
  const none = allowed.map(() => 0);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<desc>${escaped(`Requests in steps of ${showMs(stepMs)} from ${report.from} to ${report.to}, by ${limits}`)}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text class="title" x="${LEFT}" y="20">${escaped(printable(limits, 110))}</text>`,
    legend('allowed', report.allowed, LEFT),
    legend('refused', report.refused, LEFT + 200),
    `<text x="${WIDTH - RIGHT}" y="37" text-anchor="end">requests in ${showMs(stepMs)}, times in UTC</text>`,
    ...ticks(top),
    ...times(report),
    `<path class="allowed" d="${bars(none, allowed, top)}"/>`,
    `<path class="refused" d="${bars(allowed, refused, top)}"/>`,
    '</svg>',
    '',
  ].join('\n');
}

/** Stacked bars. */
function bars(below: readonly number[], counts: readonly number[], top: number): string {
  const width = PLOT_WIDTH / Math.max(1, counts.length);
  return counts
    .map((count, index) => {
      if (count === 0) return '';
      const height = (count / top) * PLOT_HEIGHT;
      const y = TOP + PLOT_HEIGHT - (below[index]! / top) * PLOT_HEIGHT;
      const x = LEFT + index * width;
      return `M${short(x)} ${short(y)}v${short(-height)}h${short(width)}v${short(height)}z`;
    })
    .join('');
}

function legend(name: 'allowed' | 'refused', count: number, x: number): string {
  return `<rect class="${name}" x="${x}" y="28" width="10" height="10"/><text x="${x + 16}" y="37">${name}: ${showCount(count)}</text>`;
}

function ticks(top: number): string[] {
  return Array.from({ length: TICKS + 1 }, (_, tick) => {
    const y = short(TOP + PLOT_HEIGHT - (tick / TICKS) * PLOT_HEIGHT);
    const count = Number(((tick / TICKS) * top).toPrecision(6));
    return (
      `<path class="grid" d="M${LEFT} ${y}h${PLOT_WIDTH}"/>` +
      `<text x="${LEFT - 8}" y="${y + 4}" text-anchor="end">${showCount(count)}</text>`
    );
  });
}

function times({ timeline: { from, stepMs, allowed } }: Report): string[] {
  const start = Date.parse(from);
  const length = stepMs * allowed.length;
  return Array.from({ length: TIMES + 1 }, (_, index) => {
    const anchor = index === 0 ? 'start' : index === TIMES ? 'end' : 'middle';
    const x = short(LEFT + (index / TIMES) * PLOT_WIDTH);
    const text = timeLabel(start + (index / TIMES) * length, length);
    return `<text x="${x}" y="${HEIGHT - 16}" text-anchor="${anchor}">${text}</text>`;
  });
}

/** A time in UTC, as precise as the length of the timeline needs. */
function timeLabel(ms: number, length: number): string {
  const iso = new Date(Math.floor(ms)).toISOString();
  if (length > 14 * 86_400_000) return iso.slice(0, 10);
  if (length > 86_400_000) return iso.slice(0, 16).replace('T', ' ');
  return length > 10_000 ? iso.slice(11, 19) : iso.slice(11, 23);
}

/** The smallest of 1, 2, 4, 8, 10, 20 … that is at least the count and the number of ticks. */
function niceCeiling(count: number): number {
  const power = 10 ** Math.floor(Math.log10(count));
  const nice = [1, 2, 4, 8, 10].map((factor) => factor * power).find((each) => each >= count) ?? 10 * power;
  return Math.max(TICKS, nice);
}

function short(value: number): number {
  return Math.round(value * 100) / 100;
}

function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (character) => entities[character]!);
}
