import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { PolicyOverride } from '../config/policy.js';
import { prefixOf } from './override-address.js';
import { ended, type OverrideRecord } from './override-record.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { ModeOverride, Override, OverrideSource, RateOverride, RatePatch } from './override.js';

/** What is overridden for one key of a limit: an identity, or all whose keys begin alike; an empty key is of all identities. */
export class KeyOverride {
  rate: OverrideRecord | undefined;
  mode: OverrideRecord | undefined;
  /** The limit that it makes with the less specific ones, as of an epoch. */
  limit: CompiledLimit | undefined;
  epoch = 0;

  /** What the policy says, where no record does. */
  policy: Pick<PolicyOverride, 'patch' | 'mode' | 'place'> | undefined;

  constructor(readonly key: string) {}

  /** The options that replace those of the limit. */
  get patch(): RatePatch | undefined {
    // A policy has options of the algorithm alone, as a patch does.
    return this.rate?.patch ?? (this.policy?.patch as RatePatch | undefined);
  }

  /** The mode that replaces that of the limit. */
  get overridingMode(): LimitMode | undefined {
    return this.mode?.mode ?? this.policy?.mode;
  }

  /** Whether nothing is overridden. */
  get isEmpty(): boolean {
    return this.rate === undefined && this.mode === undefined && this.policy === undefined;
  }

  /** The same without records: what the policy says. */
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

/** What is left of a record that holds no longer: how often its counters began anew. */
export function afterEnd(record: OverrideRecord | undefined): OverrideRecord | undefined {
  return record !== undefined && record.generation > 0 ? ended(record) : undefined;
}

/** An override of a rate as users see it; `undefined` if it was cleared. */
export function rateOverride(key: string, record: OverrideRecord): RateOverride | undefined {
  const { patch, inherit } = record;
  return patch ? { ...override(key, record), patch: { ...patch }, inherit } : undefined;
}

/** An override of a mode as users see it; `undefined` if it was cleared. */
export function modeOverride(key: string, record: OverrideRecord): ModeOverride | undefined {
  const { mode } = record;
  return mode ? { ...override(key, record), mode } : undefined;
}

function override(key: string, { version, expiresAt, by, reason }: OverrideRecord): Override {
  return {
    ...(key === '' ? {} : { key }),
    version,
    expiresAt: expiresAt ?? undefined,
    ...(by === undefined ? {} : { by }),
    ...(reason === undefined ? {} : { reason }),
  };
}
