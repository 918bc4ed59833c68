import { algorithms } from '../algorithms/index.js';
import { duration, oneOf } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import type { LimitDefinition } from '../config/limit-definition.js';
import { RATE_STATES, type RatePatch, type RateState, type SetRateOptions } from './override.js';

const OPTIONS: readonly (keyof SetRateOptions)[] = ['expiresIn', 'state'];

/** A definition with a patch over it. What the options are worth is left to who compiles it. */
export function patched(definition: LimitDefinition, patch: RatePatch): LimitDefinition {
  return { ...definition, ...patch } as LimitDefinition;
}

/** The options that a patch sets. Refuses what is no option of the limit's algorithm, and a patch that sets nothing. */
export function readPatch({ algo }: LimitDefinition, patch: unknown, place: string): RatePatch {
  const own = algorithms.get(algo)?.options ?? [];
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) {
    throw new RateLimitConfigError(messages.wrongPatch(place, patch, own));
  }
  const set = Object.entries(patch).filter(([, value]) => value !== undefined);
  for (const [option] of set) {
    if (own.includes(option)) continue;
    const owners = [...algorithms.values()].filter(({ options }) => options.includes(option)).map(({ name }) => name);
    throw new RateLimitConfigError(
      owners.length > 0
        ? messages.foreignOption(place, option, algo, own, owners)
        : messages.unchangeable(place, option, own),
    );
  }
  if (set.length === 0) throw new RateLimitConfigError(messages.wrongPatch(place, patch, own));
  return Object.fromEntries(set);
}

/** Reads how a rate is to be changed. */
export function readSetRateOptions(options: unknown, place: string): { state: RateState; lastsMs: number } {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RateLimitConfigError(messages.notOptions(place, options));
  }
  for (const option of Object.keys(options)) {
    if (OPTIONS.includes(option as keyof SetRateOptions)) continue;
    throw new RateLimitConfigError(messages.unknownOption(place, option, OPTIONS));
  }
  const { expiresIn, state } = options as SetRateOptions;
  return {
    state: oneOf(place, 'state', state ?? 'keep', RATE_STATES),
    lastsMs: expiresIn === undefined ? 0 : Math.ceil(duration(place, 'expiresIn', expiresIn) / 1000),
  };
}
