import { jest } from '@jest/globals';
import { type AlgorithmOptions, Limiter, type ShareOptions, type Store } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { featureTerms, requestTraitOf } from '../../../lib/storage/features/index.js';
import { WaitingCall } from '../../../lib/app/waiting/waiting-call.js';
import { layerOf } from '../../../lib/storage/stores/layers/store-layer.js';
import { WaitQueues } from '../../../lib/app/waiting/wait-queues.js';
import { byGlobal, ruleOf } from './rules.js';

const compile = (options: AlgorithmOptions, more: Partial<LimitSettings> = {}) =>
  new CompiledLimit(options, { location: 'test', name: 'one', ...more });

/** A limiter with its queues, without an app. */
export function waitingFor(store: Store, options: AlgorithmOptions, share?: Omit<ShareOptions, 'by'>) {
  const given = { share: share && { by: 'global', ...share } };
  const trait = requestTraitOf(given, 'test', () => byGlobal);
  const rule = ruleOf(options, { features: featureTerms(given, 'test') }, { trait });
  const layer = layerOf(store);
  const queues = new WaitQueues(layer);
  return {
    rule,
    queues,
    limiter: new Limiter('one', () => rule, layer, queues),
    /** Puts other options in force. */
    change: (changed: AlgorithmOptions, more?: Partial<LimitSettings>) => rule.decideBy(compile(changed, more)),
  };
}

/** Counts from now on how often calls that wait are looked at, until it is restored. */
export function spyOnLooks() {
  return jest.spyOn(WaitingCall.prototype, 'isTooLate');
}

/** The outcome of a promise: filled in once it has settled. */
export function outcomeOf<T>(promise: Promise<T>) {
  const outcome: { value?: T; reason?: unknown; at?: number } = {};
  promise.then(
    (value) => Object.assign(outcome, { value, at: Date.now() }),
    (reason: unknown) => Object.assign(outcome, { reason, at: Date.now() }),
  );
  return outcome;
}
