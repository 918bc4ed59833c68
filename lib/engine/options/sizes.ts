import type { OptionKind } from './option-row.js';

/**
 * A number of bytes, or a string of a number and a unit, such as `'512B'`, `'1kB'` or `'1.5MiB'`. The units are `B`, `kB`, `MB` and
 * `GB`, by thousands, and `KiB`, `MiB` and `GiB`, by 1024.
 */
export type Size = number | string;

const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

const SIZE = /^([0-9]{1,15}(?:[.][0-9]{1,9})?) ?([kMG]?B|[KMG]iB)$/;

/** Reads a size into bytes: a whole number from 1; NaN if it is not one. */
export function bytesOf(value: unknown): number {
  const [, amount, unit = ''] = typeof value === 'string' ? (SIZE.exec(value) ?? []) : ['', value, 'B'];
  const bytes =
    unit === '' || (typeof value !== 'number' && typeof value !== 'string') ? NaN : Number(amount) * BYTES[unit]!;
  return Number.isSafeInteger(bytes) && bytes >= 1 ? bytes : NaN;
}

/** Sizes of at least one byte. */
export const size: OptionKind<number> = {
  expected: `bytes or a size such as '1kB' (units: ${Object.keys(BYTES).join(', ')}), a whole number of bytes and at least 1`,
  isValid: (value) => !Number.isNaN(bytesOf(value)),
  read: bytesOf,
  schema: {
    anyOf: [
      { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
      { type: 'string', pattern: SIZE.source },
    ],
  },
};
