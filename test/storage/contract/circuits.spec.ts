import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryStore, RateLimitStoreError } from '../../../lib/index.js';
import type { Check, Counter } from '../../../lib/testing/store/index.js';
import { Circuits, type StoreReport } from '../../../lib/storage/stores/layers/circuits.js';
import type { CheckAnswer } from '../../../lib/storage/stores/store.js';
import { ask, compile } from '../../support/limits/stores.js';

const limit = compile({ algo: 'gcra', rate: 5, interval: '1h' }, 'limit');
/** A counter lies on the node of its identity. */
const on = (node: string): Counter => ({ limit, identity: node });

const failure = (node?: string) => {
  const error = new RateLimitStoreError('no answer');
  if (node !== undefined) error.node = node;
  return error;
};

/** Counters of a process, as if they lay on several nodes, of which some are down. */
class StoreOfNodes extends MemoryStore {
  readonly nodes = new Set(['a', 'b']);
  readonly down = new Set<string>();
  looks = 0;

  nodeOf({ identity }: Counter): string {
    return identity;
  }

  hasNode(node: string): boolean {
    this.looks++;
    return this.nodes.has(node);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    const node = check.entries[0]!.identity;
    if (this.down.has(node)) answer.failed(failure(node));
    else super.decide(check, answer);
  }
}

let store: StoreOfNodes;
let circuits: Circuits;
let reports: StoreReport[];

beforeEach(() => {
  jest.useFakeTimers();
  store = new StoreOfNodes();
  reports = [];
  circuits = new Circuits(store, (report) => reports.push(report));
});
afterEach(async () => {
  await store.close();
  jest.useRealTimers();
});

/** Asks nodes for an answer, and tells it or the error. */
const askNodes = (...nodes: string[]) =>
  circuits
    .ask(nodes.map(on), async () => {
      const down = nodes.find((node) => store.down.has(node));
      if (down !== undefined) throw failure(down);
      return 'answer';
    })
    .catch((error: unknown) => error);

async function breakNode(node: string): Promise<void> {
  store.down.add(node);
  for (let i = 0; i < 5; i++) await askNodes(node);
}

const told = () => reports.map((report) => [report.state, report.node]);

describe('the circuits of a store with several nodes', () => {
  it('tell which node fails, and which is back', async () => {
    await breakNode('a');
    store.down.clear();
    jest.advanceTimersByTime(1000);
    await askNodes('a');
    expect(told()).toEqual([
      ['failing', 'a'],
      ['recovered', 'a'],
    ]);
  });

  it('leave only that node alone, and what needs it', async () => {
    await askNodes('b');
    expect(circuits.isBroken).toBe(false);
    await breakNode('a');
    expect(circuits.isBroken).toBe(true);
    store.down.clear();
    expect(await askNodes('a')).toBeInstanceOf(RateLimitStoreError);
    expect(await askNodes('b', 'a')).toBeInstanceOf(RateLimitStoreError);
    expect(await askNodes('b')).toBe('answer');
  });

  it('are healthy while no call has failed, and again when all nodes are back', async () => {
    expect(circuits.isHealthy).toBe(true);
    await breakNode('a');
    await breakNode('b');
    expect(circuits.isHealthy).toBe(false);
    store.down.clear();
    jest.advanceTimersByTime(1000);
    await askNodes('a');
    expect(circuits.isHealthy).toBe(false);
    await askNodes('b');
    expect(circuits.isHealthy).toBe(true);
  });

  it('stay healthy where something else fails', async () => {
    const bug = new Error('a bug');
    const asked = circuits.ask([on('a')], () => Promise.reject(bug));
    await expect(asked).rejects.toBe(bug);
    expect([circuits.isHealthy, reports]).toEqual([true, []]);
  });
});

describe('a check that ran out of time although its nodes answer', () => {
  it('opens no circuit, and is reported once a minute', async () => {
    const late = Object.assign(failure(), { isOutOfTime: true });
    for (let i = 0; i < 20; i++) await circuits.failed([on('a'), on('b')], late);
    expect([circuits.isBroken, circuits.isHealthy]).toEqual([false, true]);
    expect(reports).toEqual([{ state: 'late', error: late }]);
    jest.advanceTimersByTime(60_000);
    await circuits.failed([on('a')], late);
    expect(reports).toHaveLength(2);
  });
});

describe('a probe', () => {
  it('brings back nodes that answer, and charges nothing', async () => {
    await breakNode('a');
    await breakNode('b');
    store.down.delete('a');
    jest.advanceTimersByTime(1000);
    await circuits.probe();
    expect(told().slice(2)).toEqual([['recovered', 'a']]);
    expect([circuits.isBroken, store.size]).toEqual([true, 0]);
    store.down.delete('b');
    jest.advanceTimersByTime(1000);
    await circuits.probe();
    expect([circuits.isBroken, circuits.isHealthy]).toEqual([false, true]);
  });

  it('asks no node that is not left alone', async () => {
    await askNodes('a');
    const decide = jest.spyOn(store, 'decide');
    await circuits.probe();
    expect(decide).not.toHaveBeenCalled();
    decide.mockRestore();
  });

  it('asks nothing of a store that was never asked', async () => {
    circuits.absent(failure());
    await expect(circuits.probe()).resolves.toBeUndefined();
  });
});

describe('a node that has no counters any more', () => {
  it('is replaced if it failed', async () => {
    await breakNode('a');
    store.nodes.delete('a');
    expect(circuits.isBroken).toBe(false);
    await circuits.probe();
    await circuits.probe();
    expect(told()).toEqual([
      ['failing', 'a'],
      ['replaced', 'a'],
    ]);
  });

  it('is forgotten if it was well', async () => {
    await askNodes('a');
    store.nodes.delete('a');
    await circuits.probe();
    expect(reports).toEqual([]);
  });

  it('is found by the answer of another, once a second', async () => {
    await breakNode('a');
    await askNodes('b');
    const { looks } = store;
    store.nodes.delete('a');
    jest.advanceTimersByTime(999);
    await askNodes('b');
    expect([store.looks, told()]).toEqual([looks, [['failing', 'a']]]);
    jest.advanceTimersByTime(1);
    await askNodes('b');
    expect(told()).toEqual([
      ['failing', 'a'],
      ['replaced', 'a'],
    ]);
  });

  it('is looked for by no answer while nothing fails', async () => {
    await askNodes('b');
    const { looks } = store;
    jest.advanceTimersByTime(5000);
    await askNodes('b');
    expect(store.looks).toBe(looks);
  });
});

describe('a store that is not there at first', () => {
  it('is back with its first answer', async () => {
    circuits.absent('refused');
    expect(reports).toEqual([{ state: 'failing', error: new Error('refused') }]);
    expect(circuits.isHealthy).toBe(false);
    await askNodes('b');
    expect(told()).toEqual([
      ['failing', undefined],
      ['recovered', undefined],
    ]);
    expect(circuits.isHealthy).toBe(true);
  });

  it('tells the error that it was given', () => {
    const error = failure();
    circuits.absent(error);
    expect(reports).toEqual([{ state: 'failing', error }]);
  });
});

describe('the circuit of a store without nodes', () => {
  it('is one of all counters', async () => {
    const plain = new MemoryStore();
    const one = new Circuits(plain, (report) => reports.push(report));
    for (let i = 0; i < 5; i++) {
      await expect(one.ask([on(`${i}`)], () => Promise.reject(failure()))).rejects.toThrow('no answer');
    }
    expect([one.isBroken, told()]).toEqual([true, [['failing', undefined]]]);
    expect(reports[0]).not.toHaveProperty('node');
    jest.advanceTimersByTime(1000);
    await one.probe();
    expect([one.isBroken, one.isHealthy]).toEqual([false, true]);
    expect((await ask(plain, limit, { identity: '4', peek: true })).remaining).toBe(5);
    await plain.close();
  });
});

describe('the circuits of a store that names slots but no nodes', () => {
  it('are those of the whole store, which is healthy again after an answer', async () => {
    const whole = new Circuits(Object.assign(new MemoryStore(), { slotOf: () => 7 }), (report) => reports.push(report));
    const moving = Object.assign(failure(), { slot: 7 });
    await expect(whole.ask([on('a')], () => Promise.reject(moving))).rejects.toBe(moving);
    expect([whole.isHealthy, reports]).toEqual([false, []]);
    await whole.ask([on('a')], () => Promise.resolve());
    expect([whole.isHealthy, reports]).toEqual([true, []]);
  });
});
