import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryStore, type OnStoreError, RateLimitStoreError } from '../../../lib/index.js';
import { type Check, CompiledLimit, type Counter } from '../../../lib/testing/store/index.js';
import { ask } from '../../support/limits/stores.js';
import { fallingBack } from '../../support/limits/layers.js';

const UP = 'ip:203.0.113.7';
const DOWN = 'user:42';
const OTHER = 'org:7';

/** A Cluster with one node per identity. Some nodes are down; a check is charged on all of its nodes or fails. */
class StoreOfNodes extends MemoryStore {
  readonly down = new Map<string, RateLimitStoreError>();
  /** The nodes of each check that arrived. */
  readonly asked: string[][] = [];

  nodeOf({ identity }: Counter): string {
    return identity;
  }

  slotOf({ identity }: Counter): number {
    return identity.length;
  }

  fail(node: string, error: object = {}): void {
    this.down.set(node, Object.assign(new RateLimitStoreError(`no answer from ${node}`), { node }, error));
  }

  override decide(...[check, answer]: Parameters<MemoryStore['decide']>): void {
    this.asked.push(check.entries.map(({ identity }) => identity));
    const failed = check.entries.find(({ identity }) => this.down.has(identity));
    if (failed === undefined) super.decide(check, answer);
    else answer.failed(this.down.get(failed.identity));
  }

  override async refund(refunds: Parameters<MemoryStore['refund']>[0]): Promise<void> {
    const failed = refunds.find(({ identity }) => this.down.has(identity));
    await super.refund(refunds.filter(({ identity }) => !this.down.has(identity)));
    if (failed !== undefined) throw this.down.get(failed.identity)!;
  }
}

const limitOf = (name: string, rate: number, onStoreError: OnStoreError = 'local') =>
  new CompiledLimit({ algo: 'fixed-window', rate, interval: '1h' }, { location: 'test', name, onStoreError });

const entry = (limit: CompiledLimit, identity: string, cost = 1) => ({ limit, identity, cost });

describe('a check of several nodes, one of which failed', () => {
  let nodes: StoreOfNodes;
  let local: MemoryStore;
  let store: ReturnType<typeof fallingBack>;

  beforeEach(() => {
    nodes = new StoreOfNodes();
    local = new MemoryStore();
    store = fallingBack(nodes, local);
  });
  afterEach(() => store.close());

  const check = async (...entries: Check['entries']) => (await store.check([{ entries, refundable: true }]))[0]!;
  const left = async (at: MemoryStore, limit: CompiledLimit, identity: string) =>
    (await ask(at, limit, { identity, peek: true })).remaining;

  describe.each<OnStoreError>(['local', 'allow', 'deny'])("with onStoreError '%s' on the healthy node", (policy) => {
    const ip = limitOf('ip', 2, policy);
    const user = limitOf('user', 100, 'allow');

    it('is decided by the healthy node, which rejects what is used up', async () => {
      nodes.fail(DOWN);
      // Before and after the circuit opens.
      for (let i = 0; i < 8; i++) {
        expect(await check(entry(ip, UP), entry(user, DOWN))).toMatchObject([
          { limit: 'ip', allowed: i < 2, source: 'memory' },
          { limit: 'user', allowed: true, source: 'fallback' },
        ]);
      }
      expect(nodes.asked.slice(0, 2)).toEqual([[UP, DOWN], [UP]]);
      expect(nodes.asked.at(-1)).toEqual([UP]);
      expect(await left(local, ip, UP)).toBe(2);
    });
  });

  it('rejects if the limit on the failed node rejects, and charges the healthy node nothing', async () => {
    nodes.fail(DOWN);
    const [ip, user] = [limitOf('ip', 9), limitOf('user', 1)];
    await check(entry(ip, UP), entry(user, DOWN));
    expect(await check(entry(ip, UP), entry(user, DOWN))).toMatchObject([{ allowed: true }, { allowed: false }]);
    expect(await left(nodes, ip, UP)).toBe(8);
  });

  it('charges the process nothing if the healthy node rejects', async () => {
    nodes.fail(DOWN);
    const [ip, user] = [limitOf('ip', 1), limitOf('user', 9)];
    await check(entry(ip, UP), entry(user, DOWN));
    expect(await check(entry(ip, UP), entry(user, DOWN))).toMatchObject([{ allowed: false }, { allowed: true }]);
    expect(await left(local, user, DOWN)).toBe(8);
  });

  it("fails if the policy on the failed node is 'deny' or the check is strict, and charges nothing", async () => {
    nodes.fail(DOWN);
    const ip = limitOf('ip', 9);
    await expect(check(entry(ip, UP), entry(limitOf('user', 9, 'deny'), DOWN))).rejects.toThrow('no answer');
    const entries = [entry(ip, UP), entry(limitOf('user', 9), DOWN)];
    await expect(store.check([{ entries, strict: true }])).rejects.toThrow('no answer');
    expect(await left(nodes, ip, UP)).toBe(9);
  });

  it('takes the same number of units on both', async () => {
    nodes.fail(DOWN);
    const entries = [entry(limitOf('ip', 3), UP, 7), entry(limitOf('user', 5), DOWN, 7)];
    const [decisions] = await store.check([{ entries, upTo: true }]);
    expect(decisions).toMatchObject([
      { allowed: true, taken: 3, remaining: 0 },
      { allowed: true, taken: 3, remaining: 2 },
    ]);
  });

  it('is decided by the healthy node while two others failed', async () => {
    nodes.fail(DOWN);
    nodes.fail(OTHER);
    const limits = [limitOf('org', 9), limitOf('ip', 9), limitOf('user', 9)] as const;
    for (let i = 0; i < 8; i++) {
      const decisions = await check(entry(limits[0], OTHER), entry(limits[1], UP), entry(limits[2], DOWN));
      expect(decisions.map(({ source }) => source)).toEqual(['fallback', 'memory', 'fallback']);
    }
    expect(await left(nodes, limits[1], UP)).toBe(1);
  });

  it('waits for no third node after two have used up its time', async () => {
    for (const node of [DOWN, OTHER]) nodes.fail(node, { code: 'SLUICE_STORE_TIMEOUT' });
    const limit = limitOf('all', 9);
    const decisions = await check(entry(limit, DOWN), entry(limit, OTHER), entry(limit, UP));
    expect(decisions.map(({ source }) => source)).toEqual(['fallback', 'fallback', 'fallback']);
    expect(nodes.asked).toHaveLength(2);
  });

  it('goes by the slot if only that failed', async () => {
    nodes.fail(DOWN, { slot: DOWN.length, node: UP });
    const limit = limitOf('slot', 9);
    expect(await check(entry(limit, UP), entry(limit, DOWN))).toMatchObject([
      { source: 'memory' },
      { source: 'fallback' },
    ]);
  });

  it('is left to the process if no node is named', async () => {
    nodes.fail(DOWN, { node: undefined });
    const limit = limitOf('all', 9);
    expect(await check(entry(limit, UP), entry(limit, DOWN))).toMatchObject([
      { source: 'fallback' },
      { source: 'fallback' },
    ]);
  });

  it('has its units refunded on the healthy node, also while the failed one is skipped', async () => {
    const limit = limitOf('refunded', 9);
    await check(entry(limit, UP, 3), entry(limit, DOWN, 3));
    nodes.fail(DOWN);
    for (let i = 0; i < 8; i++) await ask(store, limit, { identity: DOWN });
    const refunds = [DOWN, UP].map((identity) => ({ limit, identity, units: 3, source: 'redis' as const }));
    await expect(store.refund(refunds)).rejects.toBeInstanceOf(RateLimitStoreError);
    expect(await left(nodes, limit, UP)).toBe(9);
  });

  it('has units without a source refunded once, where they are counted', async () => {
    const limit = limitOf('refunded', 9);
    for (const identity of [UP, DOWN]) for (const at of [nodes, local]) await ask(at, limit, { identity, cost: 5 });
    nodes.fail(DOWN);
    await store.refund([UP, DOWN].map((identity) => ({ limit, identity, units: 2 })));
    expect([await left(nodes, limit, UP), await left(local, limit, UP)]).toEqual([6, 4]);
    expect(await left(local, limit, DOWN)).toBe(6);
  });
});
