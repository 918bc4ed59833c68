import { setImmediate as turn } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { StreamableFile } from '@nestjs/common';
import { CallRun, keepRun, runOf } from '../../../lib/nest/request/call-run.js';
import { Gate } from '../../support/time/gate.js';

describe('the run of a call', () => {
  let run: CallRun;
  /** What was left at each time that a part had ended. */
  let told: string[];
  beforeEach(() => {
    run = new CallRun();
    told = [];
    run.onIdle(() => told.push(run.isIdle ? 'nothing' : 'what lingers'));
  });

  it('is idle before it begins, and once each of its parts has ended', () => {
    expect(run.isIdle).toBe(true);
    const [first, second] = [run.begin(), run.begin()];
    first();
    expect([run.isIdle, told]).toEqual([false, []]);
    second();
    expect([run.isIdle, told]).toEqual([true, ['nothing']]);
  });

  it('counts the end of a part once', () => {
    const [first, second] = [run.begin(), run.begin()];
    first();
    first();
    expect(run.isIdle).toBe(false);
    second();
    expect(told).toEqual(['nothing']);
  });

  it.each<[string, (gate: Gate) => void]>([
    ['resolved', (gate) => gate.open()],
    ['rejected', (gate) => gate.fail(new Error('failed'))],
  ])('is at work until a promise has %s', async (_, settle) => {
    const gate = new Gate();
    run.during(gate.passed);
    await turn();
    expect(run.isIdle).toBe(false);
    settle(gate);
    await turn();
    expect(run.isIdle).toBe(true);
  });

  it('lingers while only that is left which may never end', () => {
    const [part, lingering] = [run.begin(), run.linger()];
    expect(run.isLingering).toBe(false);
    part();
    expect([run.isIdle, run.isLingering, told]).toEqual([false, true, ['what lingers']]);
    lingering();
    expect([run.isIdle, run.isLingering, told]).toEqual([true, false, ['what lingers', 'nothing']]);
  });

  it('goes on behind guards that let the call pass, for a turn of the event loop', async () => {
    run.guards(Promise.resolve(true));
    await Promise.resolve();
    expect(run.isIdle).toBe(false);
    await turn();
    expect(run.isIdle).toBe(true);
  });

  it('goes on without a gap from its guards to what follows them', async () => {
    run.guards(Promise.resolve(true));
    await Promise.resolve();
    const gate = new Gate();
    run.prepares(gate.passed);
    await turn();
    expect(told).toEqual([]);
    gate.open();
    await Promise.resolve();
    const handler = run.begin();
    run.takeOver();
    await turn();
    expect(told).toEqual([]);
    handler();
    expect(told).toEqual(['nothing']);
  });

  it.each<[string, () => Promise<boolean>, unknown]>([
    ['refuse', () => Promise.resolve(false), undefined],
    ['fail', () => Promise.reject(new Error('failed')), new Error('failed')],
  ])('ends with guards that %s', async (_, activate, error) => {
    const refusals: unknown[] = [];
    run.onRefused((each) => refusals.push(each));
    run.guards(activate());
    await turn();
    expect([run.isIdle, refusals]).toEqual([true, [error]]);
  });

  it('lingers with a stream until that is closed, and with what a generator does for it', async () => {
    const gate = new Gate();
    async function* chunks() {
      yield 'one';
      await gate.passed;
    }
    const stream = Readable.from(chunks());
    run.lingerWith(new StreamableFile(stream));
    stream.on('data', () => undefined);
    await turn();
    stream.destroy();
    await turn();
    expect(run.isLingering).toBe(true);
    gate.open();
    await turn();
    expect(run.isIdle).toBe(true);
  });

  it.each([[undefined], [null], ['text'], [{}], [[1]]])('does not linger with %p', (value) => {
    run.lingerWith(value);
    expect(run.isIdle).toBe(true);
  });

  it('is found by the list of arguments that it was kept for', () => {
    const args: unknown[] = [];
    expect(runOf(args)).toBeUndefined();
    expect(keepRun(args, run)).toBe(run);
    expect([runOf(args), runOf([])]).toEqual([run, undefined]);
  });
});
