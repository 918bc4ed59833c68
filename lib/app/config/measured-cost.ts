import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { readOptions, wrongOption } from '../../engine/options/check-options.js';
import { object, orFunction, type Size, size, time, whole, words } from '../../engine/options/kinds.js';
import type { OptionKind, OptionRows } from '../../engine/options/option-row.js';
import { type Duration, isObject } from '../../engine/options/values.js';
import { algorithms } from '../../engine/algorithms/index.js';

/** A cost by the bytes of the response. */
export interface CostByBytes {
  /** The measured quantity. */
  by: 'bytes';
  /** The size that costs one unit, such as `'1kB'`: each unit that has begun counts. */
  per: Size;
  /**
   * The units that a request is charged until its response has ended: a whole number >= 0.
   * @default 1
   */
  estimate?: number | undefined;
}

/** A cost by the time until the response has ended. */
export interface CostByDuration {
  /** The measured quantity. */
  by: 'duration';
  /** The time that costs one unit, such as `'100ms'`: each unit that has begun counts. */
  per: Duration;
  /**
   * The units that a request is charged until its response has ended: a whole number >= 0.
   * @default 1
   */
  estimate?: number | undefined;
}

/** A cost that is known once the response has ended. */
export type MeasuredCost = CostByBytes | CostByDuration;

/** How requests are measured. */
export interface Measure {
  readonly by: MeasuredCost['by'];
  /** The bytes or the milliseconds of a unit. */
  readonly per: number;
  /** The units that a request is charged first. */
  readonly estimate: number;
}

/** The measured figures of a request that has ended. */
export interface Measured {
  readonly bytes?: number | undefined;
  readonly durationMs?: number | undefined;
}

const BY = words(['bytes', 'duration']);

const kindOf = { bytes: size, duration: time } as const;

const PER_EXPECTED = "a size such as '1kB' for by: 'bytes', or a duration such as '100ms' for by: 'duration'";
/** In code, `readMeasure` checks the value, because it depends on `by`. */
const per: OptionKind = {
  expected: PER_EXPECTED,
  isValid: () => true,
  data: {
    expected: PER_EXPECTED,
    isValid: (value) => size.isValid(value) || time.isValid(value),
    schema: { anyOf: [...(size.schema!['anyOf'] as object[]), ...(time.schema!['anyOf'] as object[])] },
  },
};

const rows = {
  by: { kind: BY, text: "'bytes' of the response, or 'duration' of the request.", required: true },
  per: { kind: per, text: "The bytes or the time that cost one unit, such as '1kB' or '100ms'.", required: true },
  estimate: { kind: whole(0), text: 'The units that are charged until the response has ended.', default: 1 },
} as const satisfies OptionRows;

const EXPECTED = "{ by, per, estimate? } such as { by: 'bytes', per: '1kB' }";
const units = whole(0);
const unitsOrFunction = orFunction(units, 'a function of the context');

/** The values of `cost`. */
export const costKind: OptionKind = {
  ...object(`${units.expected}, a function of the context, or ${EXPECTED}`, rows, { or: unitsOrFunction }),
  data: object(`${units.expected}, or ${EXPECTED}`, rows, { or: units, isValid: isMeasured }),
};

function isMeasured({ by, per: unit }: { readonly by?: unknown; readonly per?: unknown }): boolean {
  return BY.isValid(by) && kindOf[by as MeasuredCost['by']].isValid(unit);
}

/**
 * How the requests of a limit are measured; `undefined` if they are not. Throws `RateLimitConfigError`.
 * @param cost a `cost` of the right kind
 */
export function readMeasure(cost: unknown, algorithm: Algorithm | undefined, location: string): Measure | undefined {
  if (!isObject(cost)) return undefined;
  if (algorithm?.leases !== undefined) {
    const able = algorithms.namesOf(({ leases }) => leases === undefined);
    throw configError('SLUICE_UNSUPPORTED_OPTION', messages.measuresHeld(location, algorithm.name, able));
  }
  const { by, estimate } = readOptions(`${location}.cost`, cost, rows);
  const kind = kindOf[by];
  const unit = cost['per'];
  if (!kind.isValid(unit)) throw wrongOption(`${location}.cost`, 'per', unit, kind.expected);
  const read = kind.read!(unit);
  return { by, per: by === 'bytes' ? read : read / 1000, estimate };
}

/** The units of a request that has ended; `undefined` if it could not be measured. */
export function measuredUnits({ by, per: unit }: Measure, { bytes, durationMs }: Measured): number | undefined {
  const measured = by === 'bytes' ? bytes : durationMs;
  return measured === undefined ? undefined : Math.min(Math.ceil(measured / unit), Number.MAX_SAFE_INTEGER);
}
