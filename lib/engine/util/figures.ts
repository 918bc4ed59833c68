// The formats of numbers in the console, in the command line and in the playground.

// The first format of a process takes milliseconds, and most apps show no numbers.
let wholeFormat: Intl.NumberFormat | undefined;
let shortFormat: Intl.NumberFormat | undefined;
const MINUS = '\u2212';
const SPACE = '\u00a0';

export function whole(value: number): string {
  return (wholeFormat ??= new Intl.NumberFormat('en', { maximumFractionDigits: 0 })).format(value);
}

function short(value: number): string {
  shortFormat ??= new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
  return shortFormat.format(value);
}

/** Units of a limit: `1,200 tokens`, `1 token`. Millionths of a currency are shown as money, `$0.50`. */
export function amount(units: number, unit?: string): string {
  if (unit === undefined) return whole(units);
  return CURRENCY.test(unit) ? money(units / MICROS, unit) : `${whole(units)}${SPACE}${units === 1 ? one(unit) : unit}`;
}

/** The same for places where nothing else shows what is counted: units without a name are called units. */
export function units(count: number, unit?: string): string {
  return unit === undefined ? plural(count, 'unit') : amount(count, unit);
}

/**
 * The singular of a plural that a user has chosen. The last `s` is removed only if the plural is regular: after a consonant, a vowel and
 * `y`, or an `e` that belongs to the word. All other names stay unchanged, such as `data`, `queries`, `GB` and `series`.
 */
function one(unit: string): string {
  return REGULAR.test(unit) && !IRREGULAR.test(unit) ? unit.slice(0, -1) : unit;
}

/** `tokens`, `API calls`, `images`, `GPU-days`; and abbreviations such as `GPUs`. */
const REGULAR = /(?:(?:^|[ -])[A-Za-z][a-z]*(?:[a-z][bcdfghklmnprtw]|[aeo]y|[a-z][bcdfgklmnprtu]e)|[A-Z]{2})s$/;
/** Words with such an ending that aren't regular plurals, or whose plural adds more than an `s`. */
const IRREGULAR = /(?:^|[ -])(?:lens|means|corps|temps|\w*(?:news|bps|iops|ics|ices))$/i;

const CURRENCY = /^[A-Z]{3}$/;
const MICROS = 1_000_000;

/** With the currency's usual decimals if these are exact, otherwise with up to six. */
function money(value: number, currency: string): string {
  const form = new Intl.NumberFormat('en', { style: 'currency', currency });
  const digits = form.resolvedOptions().maximumFractionDigits ?? 2;
  const isFine = Math.abs(value * 10 ** digits - Math.round(value * 10 ** digits)) > 1e-9;
  if (!isFine) return form.format(value);
  return new Intl.NumberFormat('en', { style: 'currency', currency, maximumFractionDigits: 6 }).format(value);
}

/** A rate per second, with one decimal while it is small. */
export function perSecond(value: number): string {
  if (value === 0) return '0';
  if (value < 0.1) return '<\u202f0.1';
  if (value < 100) return value.toFixed(1).replace(/\.0$/, '');
  return value < 10_000 ? whole(value) : short(value);
}

export function percent(part: number, all: number): string {
  if (all === 0 || part === 0) return '0%';
  const share = (100 * part) / all;
  if (share < 0.1) return '<\u202f0.1%';
  // A part that is less than all is never shown as 100 %.
  return `${(share < 99.95 || part >= all ? share : 99.9).toFixed(share < 10 || share > 99 ? 1 : 0).replace(/\.0$/, '')}%`;
}

export function milliseconds(value: number | null): string {
  if (value === null) return '–';
  if (value >= 1_000) return duration(value);
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)}${SPACE}ms`;
}

export function signedMilliseconds(value: number): string {
  const size = Math.abs(value);
  const sign = Math.round(size) === 0 ? '' : value < 0 ? MINUS : '+';
  return sign + (size >= 1_000 ? duration(size) : `${size.toFixed(0)}${SPACE}ms`);
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** The two largest units of a duration: `1 h 4 min`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.ceil(ms)}${SPACE}ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')}${SPACE}s`;
  let rest = Math.round(ms / 1_000) * 1_000;
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${SPACE}${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

export function bytes(value: number | null): string {
  if (value === null) return 'unknown';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let size = value;
  let unit = 0;
  for (; size >= 1_000 && unit < units.length - 1; unit++) size /= 1_000;
  return `${unit === 0 || size >= 100 ? size.toFixed(0) : size.toFixed(1)}${SPACE}${units[unit]}`;
}

/** `in 4 min 3 s`, or `4 min 3 s ago`. */
export function relative(at: number, now: number): string {
  const distance = at - now;
  if (Math.abs(distance) < 1_000) return 'now';
  return distance > 0 ? `in ${duration(distance)}` : `${duration(-distance)} ago`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** The same with spaces that allow line breaks, as terminals use them. */
export function spaced(text: string): string {
  return text.replaceAll(/[\u00a0\u202f]/g, ' ');
}

/**
 * Characters that hide, or that change how the text around them reads: control characters, line separators, zero-width spaces and the marks
 * that set the direction of writing. Joiners are allowed, since words and emoji need them.
 */
const MISLEADING = /[\p{Cc}\u061C\u200B\u200E\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/gu;

/** A text that clients choose, such as an identity, in a form that is safe to show to people: misleading characters are escaped. */
export function legible(text: string): string {
  return text.replaceAll(MISLEADING, (each) => `\\u{${each.codePointAt(0)!.toString(16)}}`);
}
