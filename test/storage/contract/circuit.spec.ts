import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { RateLimitStoreError } from '../../../lib/index.js';
import { Circuit, type CircuitReport } from '../../../lib/storage/stores/layers/circuit.js';

let circuit: Circuit;
let reports: CircuitReport[];
let calls: number;

beforeEach(() => {
  jest.useFakeTimers();
  reports = [];
  calls = 0;
  circuit = new Circuit('a:1', (report) => reports.push(report));
});
afterEach(() => {
  jest.useRealTimers();
});

const failure = (node?: string) => {
  const error = new RateLimitStoreError('no answer');
  if (node !== undefined) error.node = node;
  return error;
};

/** Calls the node, which fails with an error, or answers. Tells the error. */
function run(error?: Error): Promise<unknown> {
  return circuit
    .run(async () => {
      calls++;
      if (error !== undefined) throw error;
    })
    .catch((reason: unknown) => reason);
}

const failTimes = async (times: number) => {
  for (let i = 0; i < times; i++) await run(failure());
};
/** Lets it fail, and tells how many seconds it has to answer until it is back. */
async function secondsUntilBack(): Promise<number> {
  await failTimes(1);
  for (let seconds = 0; ; seconds++) {
    await run();
    if (!circuit.isFailing) return seconds;
    jest.advanceTimersByTime(1000);
  }
}

const states = () => reports.map(({ state }) => state);

describe('a circuit', () => {
  it('is well before anything is known', async () => {
    expect([circuit.isFailing, circuit.isOpen]).toEqual([false, false]);
    await run();
    circuit.recovered();
    expect([circuit.isFailing, reports]).toEqual([false, []]);
  });

  it('tells of the first failure, and hands on each', async () => {
    const [first, second] = [failure(), failure('a:1')];
    expect([await run(first), await run(second)]).toEqual([first, second]);
    expect(reports).toEqual([{ state: 'failing', error: first }]);
    expect([circuit.isFailing, circuit.isOpen]).toEqual([true, false]);
  });

  it('leaves a node alone that failed five times in a row', async () => {
    await failTimes(4);
    expect(circuit.isOpen).toBe(false);
    await failTimes(1);
    expect(circuit.isOpen).toBe(true);
    const refused = (await run()) as RateLimitStoreError;
    expect(refused).toBeInstanceOf(RateLimitStoreError);
    expect(refused.cause).toBeInstanceOf(Error);
    expect([refused.node, calls, states()]).toEqual(['a:1', 5, ['failing']]);
  });

  it('probes it with one call after a second, and takes its answer for all', async () => {
    await failTimes(5);
    jest.advanceTimersByTime(999);
    await run();
    expect(calls).toBe(5);
    jest.advanceTimersByTime(1);
    const answers = await Promise.all([run(), run()]);
    expect(answers).toEqual([undefined, expect.any(RateLimitStoreError)]);
    expect([calls, circuit.isOpen, circuit.isFailing, states()]).toEqual([6, false, false, ['failing', 'recovered']]);
  });

  it('leaves it alone again if the probe fails', async () => {
    await failTimes(5);
    jest.advanceTimersByTime(1000);
    await failTimes(1);
    expect(circuit.isOpen).toBe(true);
    await run();
    expect([calls, states()]).toEqual([6, ['failing']]);
  });

  it('takes no error for a failure that is of another node or of no store', async () => {
    const errors = [failure('b:2'), new Error('a bug')];
    for (const error of [...errors, ...errors, ...errors]) expect(await run(error)).toBe(error);
    expect([circuit.isFailing, circuit.isOpen, reports]).toEqual([false, false, []]);
  });
});

describe('a node that answers again', () => {
  it('is back when it has not failed for a second', async () => {
    await failTimes(1);
    await run();
    jest.advanceTimersByTime(999);
    await run();
    expect(circuit.isFailing).toBe(true);
    jest.advanceTimersByTime(1);
    await run();
    expect([circuit.isFailing, states()]).toEqual([false, ['failing', 'recovered']]);
  });

  it('counts from its last failure', async () => {
    await failTimes(1);
    jest.advanceTimersByTime(900);
    await failTimes(1);
    jest.advanceTimersByTime(900);
    await run();
    expect(circuit.isFailing).toBe(true);
    jest.advanceTimersByTime(100);
    await run();
    expect(circuit.isFailing).toBe(false);
  });

  it('has to answer twice as long each time that it fails soon again, up to a minute', async () => {
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) waits.push(await secondsUntilBack());
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    expect(reports).toHaveLength(16);
  });

  it('is back with a probe, however long it would have to answer else', async () => {
    expect([await secondsUntilBack(), await secondsUntilBack()]).toEqual([1, 2]);
    await failTimes(5);
    jest.advanceTimersByTime(1000);
    await run();
    expect(circuit.isFailing).toBe(false);
  });

  it('has to answer for a second once it was well for ten times as long', async () => {
    expect([await secondsUntilBack(), await secondsUntilBack()]).toEqual([1, 2]);
    jest.advanceTimersByTime(19_999);
    expect(await secondsUntilBack()).toBe(4);
    jest.advanceTimersByTime(40_000);
    expect(await secondsUntilBack()).toBe(1);
  });
});

describe('a node that was not there', () => {
  it('is back with its first answer', async () => {
    const error = new Error('refused');
    circuit.absent(error);
    expect(reports).toEqual([{ state: 'failing', error }]);
    expect([circuit.isFailing, circuit.isOpen]).toEqual([true, false]);
    await run();
    expect([circuit.isFailing, states()]).toEqual([false, ['failing', 'recovered']]);
  });

  it('is as any other the next time', async () => {
    circuit.absent(new Error('refused'));
    await run();
    jest.advanceTimersByTime(60_000);
    await failTimes(1);
    await run();
    expect(states()).toEqual(['failing', 'recovered', 'failing']);
  });
});
