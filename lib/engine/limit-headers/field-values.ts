/** The longest field value to read. */
const LONGEST = 4096;

const DECIMAL = /^\d{1,17}(?:\.\d{1,17})?$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000001,
};
const PARTS = /(\d{1,17}(?:\.\d{1,17})?)(ms|us|µs|ns|d|h|m|s)/gy;

/** The value of a field without surrounding white space; `undefined` if it is absent, empty or too long. */
export function textOf(headers: { get(name: string): string | null }, name: string): string | undefined {
  const value: unknown = headers.get(name);
  if (typeof value !== 'string' || value.length > LONGEST) return undefined;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** A number >= 0; `undefined` for anything else, negative numbers included. */
export function decimal(text: string | undefined): number | undefined {
  return text !== undefined && DECIMAL.test(text) ? Number(text) : undefined;
}

/** Whole units, rounded down: a fraction of a unit is of no use. */
export function units(text: string | undefined): number | undefined {
  const value = decimal(text);
  return value === undefined ? undefined : Math.floor(value);
}

/** A length of time such as `6m0s` or `120ms`, in milliseconds. */
export function lengthOfTime(text: string | undefined): number | undefined {
  if (text === undefined || text.length > 100) return undefined;
  let total = 0;
  let read = 0;
  for (const [part, count, unit] of text.matchAll(PARTS)) {
    total += Number(count) * UNIT_MS[unit!]!;
    read += part.length;
  }
  return read > 0 && read === text.length ? total : undefined;
}

/** A date of RFC 9110 or RFC 3339, in milliseconds since the epoch; no other text that JavaScript accepts as a date. */
export function date(text: string | undefined): number | undefined {
  if (text === undefined || text.length > 64) return undefined;
  if (!/^[A-Z][a-z]{2,8}, |^[A-Z][a-z]{2} [A-Z][a-z]{2} |^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}/.test(text))
    return undefined;
  // The asctime form has no zone, and means UTC.
  const time = Date.parse(/^[A-Z][a-z]{2} /.test(text) ? `${text} GMT` : text);
  return Number.isFinite(time) ? time : undefined;
}
