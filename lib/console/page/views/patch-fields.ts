import type { FieldSpec } from '../parts/field.js';

const LABELS: Readonly<Record<string, string>> = {
  rate: 'Rate (units)',
  interval: 'Interval',
  burst: 'Burst (units)',
  limit: 'Held at once',
  queue: 'Places in the queue',
  ttl: 'Longest hold',
};

/** Options that are part of a rate's text. */
const SAID = new Set(['algo', 'rate', 'interval', 'limit']);

const HINTS: Readonly<Record<string, string>> = {
  interval: 'Such as 1s, 10s, 1m or 1h.',
  ttl: 'Such as 30s or 5m.',
};

/** A field for each option of a rate that can be changed. */
export function patchFields(names: readonly string[], options: object): FieldSpec[] {
  return names.map((name) => {
    const now = (options as Record<string, unknown>)[name];
    const placeholder = typeof now === 'number' || typeof now === 'string' ? String(now) : undefined;
    return { name: `patch.${name}`, label: LABELS[name] ?? name, hint: HINTS[name], placeholder };
  });
}

/** A rate, with the options that its text lacks, such as a burst. */
export function fullRate(rate: string, options: object): string {
  const rest = Object.entries(options)
    .filter(([name, value]) => !SAID.has(name) && (typeof value === 'number' || typeof value === 'string'))
    .map(([name, value]) => `${name} ${value}`);
  return [rate, ...rest].join(', ');
}

/** The values of the fields that are filled in; `undefined` if the form has no such fields. */
export function patchOf(values: Readonly<Record<string, string>>): Record<string, unknown> | undefined {
  const fields = Object.entries(values).filter(([name]) => name.startsWith('patch.'));
  if (fields.length === 0) return undefined;
  const filled = fields.filter(([, text]) => text.trim() !== '');
  return Object.fromEntries(filled.map(([name, text]) => [name.slice('patch.'.length), numberOf(text)]));
}

/** The text of a field without spaces around it; `undefined` if it is empty. */
export function filled(text: string | undefined): string | undefined {
  return text?.trim() || undefined;
}

/** A number, or the unchanged text, which the app then reports as invalid. */
export function numberOf(text: string): number | string {
  const trimmed = text.trim();
  return trimmed !== '' && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}
