import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { PolicyOverride } from '../config/policy.js';
import { causeOf } from './change-cause.js';
import { prefixOf } from './override-address.js';
import { ended, type OverrideRecord } from './override-record.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { ModeOverride, Override, OverrideSource, RateOverride, RatePatch } from './override.js';

/** The overrides for one key of a limit, for all keys with a prefix, or, if the key is empty, for all keys. */
export class KeyOverride {
  rate: OverrideRecord | undefined;
  mode: OverrideRecord | undefined;
  /** The limit that results from this and the less specific overrides, at an epoch. */
  limit: CompiledLimit | undefined;
  epoch = 0;

  /** The values of the policy, which apply unless a record overrides them. */
  policy: Pick<PolicyOverride, 'patch' | 'mode' | 'place'> | undefined;

  constructor(readonly key: string) {}

  /** The options that replace the limit's options. */
  get patch(): RatePatch | undefined {
    // A policy contains only options of the algorithm here, as a patch does.
    return this.rate?.patch ?? (this.policy?.patch as RatePatch | undefined);
  }

  /** The mode that replaces the limit's mode. */
  get overridingMode(): LimitMode | undefined {
    return this.mode?.mode ?? this.policy?.mode;
  }

  /** True if nothing is overridden. */
  get isEmpty(): boolean {
    return this.rate === undefined && this.mode === undefined && this.policy === undefined;
  }

  /** A copy with the values of the policy only, without records. */
  get withoutRecords(): KeyOverride {
    const other = new KeyOverride(this.key);
    other.policy = this.policy;
    return other;
  }

  get source(): OverrideSource {
    if (this.key === '') return 'limit';
    return prefixOf(this.key) === undefined ? 'key' : 'pattern';
  }

  get rateOverride(): RateOverride | undefined {
    return this.rate && rateOverride(this.key, this.rate);
  }

  get modeOverride(): ModeOverride | undefined {
    return this.mode && modeOverride(this.key, this.mode);
  }
}

/** The record to keep after an override has ended: only the number of times that its counters were restarted matters. */
export function afterEnd(record: OverrideRecord | undefined): OverrideRecord | undefined {
  return record !== undefined && record.generation > 0 ? ended(record) : undefined;
}

/** The public form of a rate override; `undefined` if it was cleared. */
export function rateOverride(key: string, record: OverrideRecord): RateOverride | undefined {
  const { patch, inherit } = record;
  return patch ? { ...override(key, record), patch: { ...patch }, inherit } : undefined;
}

/** The public form of a mode override; `undefined` if it was cleared. */
export function modeOverride(key: string, record: OverrideRecord): ModeOverride | undefined {
  const { mode } = record;
  return mode ? { ...override(key, record), mode } : undefined;
}

function override(key: string, record: OverrideRecord): Override {
  const { version, expiresAt } = record;
  return { ...(key === '' ? {} : { key }), version, expiresAt: expiresAt ?? undefined, ...causeOf(record) };
}
