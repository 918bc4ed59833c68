import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { AlgorithmOptions, Store } from '../../../lib/index.js';
import { CompiledLimit, type LimitSettings } from '../../../lib/testing/store/index.js';
import { featureTerms } from '../../support/limits/stores.js';
import type { LocalChannel } from '../../support/limits/local-channel.js';
import { startRemembering } from '../../support/limits/remembering.js';
import type { SharedStore } from '../../support/redis/shared-store.js';

const identity = 'user:1';
const window: AlgorithmOptions = { algo: 'fixed-window', rate: 10, interval: '1h' };
const monthly: AlgorithmOptions = { algo: 'calendar-window', rate: 10, period: 'month', credits: true };
const lesson = { ageMs: 0, inFlight: 0, instance: 1 };

const limitOf = (name: string, settings: Partial<LimitSettings> = {}, options: AlgorithmOptions = window) =>
  new CompiledLimit(options, { location: 'test', name, remembersRefusals: true, ...settings });

describe('a refusal that is remembered', () => {
  const [limit, other] = [limitOf('limit'), limitOf('other')];
  const counter = { limit, identity };
  let now: number;
  let shared: SharedStore;
  let channel: LocalChannel;
  let store: Store;

  beforeEach(async () => {
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    ({ shared, channel, store } = await startRemembering());
  });
  afterEach(async () => {
    await store.close();
    jest.restoreAllMocks();
  });

  const entriesOf = (limits: readonly CompiledLimit[], cost: number) =>
    limits.map((each) => ({ limit: each, identity, cost }));

  /** Whether a check reaches the store. */
  async function isAsked(...limits: CompiledLimit[]): Promise<boolean> {
    const asked = shared.checks.length;
    await store.check([{ entries: entriesOf(limits, 1) }]);
    return shared.checks.length > asked;
  }

  /** Uses limits up, and has a refusal remembered. */
  async function refuse(...limits: CompiledLimit[]): Promise<void> {
    await shared.check([{ entries: entriesOf(limits, 10) }]);
    expect(await isAsked(...limits)).toBe(true);
  }

  it.each<[string, () => Promise<unknown>]>([
    ['a refund', () => store.refund([{ ...counter, units: 1 }])],
    ['a block', () => store.block(counter, 0)],
    ['a reset', () => store.reset([counter])],
  ])('ends with %s, on all instances, which hear of it from when it began', async (_, act) => {
    await refuse(limit);
    const since = now;
    shared.meanwhile = () => void (now += 7);
    await act();
    shared.meanwhile = () => undefined;
    expect(channel.published).toEqual([['', since]]);
    expect(await isAsked(limit)).toBe(true);
  });

  it('ends with nothing that is done to counters of which none is remembered', async () => {
    await refuse(limit);
    const own = { limit: limitOf('own', { remembersRefusals: false }), identity };
    await store.refund([{ ...own, units: 1 }]);
    await store.block(own, 0);
    await store.reset([own]);
    expect(channel.published).toEqual([]);
    expect(await isAsked(limit)).toBe(false);
    await store.reset([own, counter]);
    expect(channel.published).toHaveLength(1);
  });

  it('ends with a claim whose units come back, and with none whose units were spent', async () => {
    await refuse(limit);
    await store.refund([{ ...counter, units: 1, claim: { id: 'job', isSpent: true } }]);
    expect([channel.published, await isAsked(limit)]).toEqual([[], false]);
    await store.refund([{ ...counter, units: 1, claim: { id: 'job', isSpent: false } }]);
    expect([channel.published.length, await isAsked(limit)]).toEqual([1, true]);
  });

  it('ends with credits, on all instances', async () => {
    const plan = limitOf('plan', {}, monthly);
    await refuse(plan);
    shared.meanwhile = (check) => {
      if (check === undefined) now += 7;
    };
    expect(await store.credit!({ limit: plan, identity, units: 5 })).toBe(5);
    expect(channel.published).toEqual([['', 1000]]);
    expect(await isAsked(plan)).toBe(true);
  });

  it('ends with the first lesson of any limit whose refusals are remembered, and with no other lesson', async () => {
    await refuse(other);
    await store.learn!({ limit: limitOf('own', { remembersRefusals: false }), identity }, lesson);
    expect(await isAsked(other)).toBe(false);
    await store.learn!(counter, lesson);
    expect([await isAsked(other), await isAsked(other)]).toEqual([true, false]);
    await store.learn!(counter, lesson);
    expect(await isAsked(other)).toBe(false);
  });

  it('is none of a limit that learns of an upstream, from its first lesson on', async () => {
    await refuse(limit);
    await refuse(other);
    await store.learn!(counter, { ...lesson, window: 1, remaining: 1, resetAfterMs: 30_000 });
    const faster = other.withOptions({ ...window, rate: 20 });
    await store.learn!({ limit: faster, identity: 'user:2' }, lesson);
    for (const each of [limit, other, limit, other]) expect(await isAsked(each)).toBe(true);
    const none = limitOf('none');
    await refuse(none);
    expect(await isAsked(none)).toBe(false);
  });

  it('is none if any of the limits was decided while its store failed', async () => {
    shared.source = ({ limit: name }) => (name === 'other' ? 'fallback' : 'redis');
    await refuse(limit, other);
    expect(await isAsked(limit, other)).toBe(true);
    await refuse(limit);
    expect(await isAsked(limit)).toBe(false);
  });

  it('is one for each priority', async () => {
    const kept = limitOf('kept', { features: featureTerms({ reserveFor: { critical: 0.2, default: 0.2 } }, 'test') });
    const versions = (['critical', 'default', 'sheddable'] as const).map((priority) => kept.meet({ priority }));
    await shared.check([{ entries: entriesOf([kept], 10) }]);
    for (const asked of [true, false, false]) {
      for (const version of versions) expect(await isAsked(version)).toBe(asked);
    }
  });

  it('is not there of a check that fails, which fails', async () => {
    shared.meanwhile = () => {
      throw new Error('down');
    };
    await expect(isAsked(limit)).rejects.toThrow('down');
  });
});
