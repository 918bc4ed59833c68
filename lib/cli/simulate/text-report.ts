import type { Writable } from 'node:stream';
import { styleText } from 'node:util';
import { plural } from '../../engine/util/figures.js';
import { columns, printable, showCount, showMs, showShare } from '../../engine/util/printable.js';
import type { LimitReport, Report } from './report.js';

type Screen = Writable & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  getColorDepth?(): number;
};

interface Look {
  readonly width: number;
  paint(style: 'bold' | 'green' | 'red', text: string): string;
}

/** The format of a stream: that of a terminal, or as set by `COLUMNS`, `NO_COLOR` and `FORCE_COLOR`. */
export function lookOf(stream: Screen): Look {
  const columns = Number(process.env['COLUMNS'] ?? (stream.isTTY === true ? stream.columns : NaN));
  const width = Number.isInteger(columns) && columns > 0 ? columns : Infinity;
  const isPainted = hasColours(stream);
  return { width, paint: (style, text) => (isPainted ? styleText(style, text, { validateStream: false }) : text) };
}

function hasColours(stream: Screen): boolean {
  const forced = process.env['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  if ((process.env['NO_COLOR'] ?? '') !== '') return false;
  return stream.isTTY === true && (stream.getColorDepth?.() ?? 1) > 1;
}

export function tableOf(report: Report, look: Look): string {
  const { input, requests, allowed, refused, retryAfter } = report;
  const format = input.format === null ? '' : ` (${input.format})`;
  const sections = [
    [`${plural(requests, 'request')} of ${printable(input.source)}${format}`, `from ${report.from} to ${report.to}`],
    painted(
      ['green', refused > 0 ? 'red' : undefined],
      look,
      columns([
        ['allowed', showCount(allowed), showShare(allowed, requests)],
        ['refused', showCount(refused), showShare(refused, requests), ...waitsOf(retryAfter)],
      ]),
    ),
    painted(['bold'], look, limitsOf(report, look)),
    painted(['bold'], look, keysOf(report, look)),
    notesOf(report),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

/** The lines of a table. The first ones have styles. */
function painted(styles: readonly (Parameters<Look['paint']>[0] | undefined)[], look: Look, lines: string[]): string[] {
  return lines.map((line, index) => {
    const style = styles[index];
    return style === undefined ? line : look.paint(style, line);
  });
}

/** One line per limit. If the lines would be too wide, the period with the most units is below. */
function limitsOf({ limits, requests }: Report, { width }: Look): string[] {
  const rows = limits.map((limit) => [
    printable(limit.name) + (limit.shadow ? ' (shadow)' : ''),
    showCount(limit.refused),
    showShare(limit.refused, requests),
    limit.retryAfter.count === 0 ? '-' : showMs(limit.retryAfter.medianMs),
    limit.retryAfter.count === 0 ? '-' : showMs(limit.retryAfter.p99Ms),
    showCount(limit.quota),
  ]);
  const worst = limits.map(worstOf);
  const head = ['limit', 'refused', '', 'retry after: median', '99 %', 'quota'];
  const wide = columns([[...head, 'most admitted'], ...rows.map((row, index) => [...row, worst[index]!])], [0, 6]);
  if (wide.every((line) => line.length <= width)) return wide;
  const [first = '', ...others] = columns([head, ...rows]);
  return [first, ...others.flatMap((line, index) => [line, `  most admitted: ${worst[index]!}`])];
}

function waitsOf({ count, medianMs, p99Ms }: Report['retryAfter']): string[] {
  return count === 0 ? [] : [`retry after: median ${showMs(medianMs)}, 99 % ${showMs(p99Ms)}`];
}

function worstOf({ worstStretch: worst }: LimitReport): string {
  if (worst === null) return '-';
  const units = `${worst.exact ? '' : 'at least '}${showCount(worst.units)}`;
  return `${units} in ${showMs(worst.lengthMs)}: ${printable(worst.key)} from ${worst.from}`;
}

function keysOf({ keys: { top }, limits }: Report, { width }: Look): string[] {
  if (top.length === 0) return [];
  // Limits with another key can't reject these.
  const names = limits.map(({ name }) => name);
  const rows = top.map(({ key, allowed, refused, refusedBy }) => [
    printable(key),
    showCount(allowed + refused),
    showCount(refused),
    showShare(refused, allowed + refused),
    ...names.map((name) => {
      const by = refusedBy.find(({ limit }) => limit === name);
      return by === undefined ? '-' : showCount(by.refused);
    }),
  ]);
  const table = [['refused most', 'requests', 'refused', '', ...names.map((name) => `by ${printable(name)}`)], ...rows];
  const wide = columns(table);
  // JSON output also contains the limit that rejected.
  return wide.every((line) => line.length <= width) ? wide : columns(table.map((row) => row.slice(0, 4)));
}

/** Notes that explain why figures are less meaningful than they seem. */
function notesOf({ input, keys, limits }: Report): string[] {
  const notes: string[] = [];
  const { skipped, outOfOrder, late, filtered } = input;
  const ofLines = (count: number) => {
    const lines = plural(input.lines, 'line');
    return plural(count, `of ${lines} is`, `of ${lines} are`);
  };
  if (filtered !== undefined) {
    notes.push(`${ofLines(filtered)} of other paths or statuses.`);
  }
  if (skipped.count > 0) {
    notes.push(`${ofLines(skipped.count)} left out. The first:`);
    for (const { line, reason, text } of skipped.first) notes.push(`  line ${line} ${reason}: ${printable(text)}`);
  }
  if (outOfOrder > 0) {
    const tooLate = plural(late, 'that came too late counts', 'that came too late count');
    const rest = late > 0 ? `, but ${tooLate} as made at the latest time before` : '';
    notes.push(`${plural(outOfOrder, 'line was', 'lines were')} out of order, and sorted by time${rest}.`);
  }
  for (const { name, neverAllowed, held } of limits) {
    const limit = printable(name);
    if (neverAllowed > 0) {
      notes.push(`${limit} never allows ${showCount(neverAllowed)} of the requests: they cost more than its quota.`);
    }
    if (held !== undefined && held.count > 0) {
      notes.push(`${limit} holds what it allows: median ${showMs(held.medianMs)}, 99 % ${showMs(held.p99Ms)}.`);
    }
  }
  if (keys.forgotten > 0) {
    const effect =
      keys.forgottenCounting === 0
        ? 'None of them still counted anything, so nothing else was decided.'
        : `${showCount(keys.forgottenCounting)} of them still counted, so more may be allowed than the limits say.`;
    const forgotten = plural(keys.forgotten, 'key was', 'keys were');
    notes.push(`${forgotten} forgotten, since there were more than --max-keys. ${effect}`);
  }
  return notes;
}

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
