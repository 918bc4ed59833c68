import { setImmediate as turn } from 'node:timers/promises';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { StreamableFile } from '@nestjs/common';
import { CallRun, keepRun, runOf } from '../../../lib/nest/request/call-run.js';
import { Gate } from '../../support/time/gate.js';
import {
  combineLatest,
  defer,
  from,
  interval,
  lastValueFrom,
  map,
  mergeMap,
  NEVER,
  Observable,
  of,
  startWith,
  Subject,
  throwError,
  toArray,
} from 'rxjs';
import { partOfCall } from '../../../lib/nest/follow-calls.js';
import { isStream, watched } from '../../../lib/nest/request/handler-run.js';

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

describe('Observables of a call', () => {
  let run: CallRun;
  let gate: Gate<string>;
  beforeEach(() => {
    run = new CallRun();
    gate = new Gate();
  });

  async function* generated() {
    yield await gate.passed;
    yield 'more';
  }

  const failure = new Error('failed');

  describe('an Observable as a part of a call', () => {
    it('hands on what comes, and ends with it', async () => {
      expect(await lastValueFrom(partOfCall(of(1, 2), run).pipe(toArray()))).toEqual([1, 2]);
      expect(run.isIdle).toBe(true);
    });

    it('hands on its error, and ends with it', async () => {
      await expect(
        lastValueFrom(
          partOfCall(
            throwError(() => failure),
            run,
          ),
        ),
      ).rejects.toBe(failure);
      expect(run.isIdle).toBe(true);
    });

    it('is at work as long as somebody listens', () => {
      const subject = new Subject();
      const listener = partOfCall(subject, run).subscribe();
      subject.next(1);
      expect(run.isIdle).toBe(false);
      subject.complete();
      expect(run.isIdle).toBe(true);
      listener.unsubscribe();
    });

    it.each<[string, () => Observable<unknown>]>([
      ['a promise', () => from(gate.passed)],
      ['a promise that is mapped', () => from(gate.passed).pipe(map((text) => text.length))],
      ['a deferred promise', () => defer(() => gate.passed)],
      ['a promise behind a promise', () => from(Promise.resolve()).pipe(mergeMap(() => gate.passed))],
      ['a promise among others', () => combineLatest([of(1), new Subject(), gate.passed])],
      ['an asynchronous generator', () => from(generated())],
    ])('lingers with %s that its listener has left', async (_, make) => {
      const heard: unknown[] = [];
      const listener = partOfCall(make(), run).subscribe((value) => heard.push(value));
      await turn();
      listener.unsubscribe();
      await turn();
      expect(run.isLingering).toBe(true);
      gate.open('done');
      await turn();
      expect([run.isIdle, heard]).toEqual([true, []]);
    });

    it('lingers with a promise until it has failed', async () => {
      const listener = partOfCall(from(gate.passed), run).subscribe();
      listener.unsubscribe();
      expect(run.isLingering).toBe(true);
      gate.fail(failure);
      await turn();
      expect(run.isIdle).toBe(true);
    });

    it.each<[string, Observable<unknown>]>([
      ['a timer', interval(1000)],
      ['a subject', new Subject().pipe(map(String))],
      ['a stream that is kept open', NEVER.pipe(startWith('one'))],
      ['what cancels its work', new Observable(() => () => undefined)],
    ])('is over as soon as its listener leaves %s', (_, observable) => {
      const listener = partOfCall(observable, run).subscribe();
      expect(run.isIdle).toBe(false);
      listener.unsubscribe();
      expect(run.isIdle).toBe(true);
    });
  });
});

describe('streams of a call', () => {
  const failure = new Error('failed');

  /** A stream by hand, with no more than what is given. */
  function streamOf(iterator: AsyncIterator<unknown>): AsyncIterable<unknown> {
    return { [Symbol.asyncIterator]: () => iterator };
  }

  /** A watched stream, and what it has reported. */
  function watch(iterator: AsyncIterator<unknown>) {
    const reports: unknown[] = [];
    const stream = watched(streamOf(iterator), (failed, error) => reports.push({ failed, error }));
    return { stream, reports };
  }

  async function* events() {
    yield 1;
    yield 2;
    return 3;
  }

  const endless: AsyncIterator<unknown> = { next: () => new Promise(() => {}) };
  const ended = { failed: false, error: undefined };
  const failed = { failed: true, error: failure };

  describe('a stream', () => {
    it('is what can be read with for await', () => {
      expect([events(), streamOf(endless)].map(isStream)).toEqual([true, true]);
    });

    it.each([[undefined], [null], ['text'], [7], [{}], [[1, 2]], [() => {}]])('is not %p', (value) => {
      expect(isStream(value)).toBe(false);
    });
  });

  describe('a watched stream', () => {
    it('hands on what comes, and reports its end once it has come', async () => {
      const { stream, reports } = watch(events());
      expect(await stream.next()).toEqual({ done: false, value: 1 });
      expect(await stream.next()).toEqual({ done: false, value: 2 });
      expect(reports).toEqual([]);
      expect(await stream.next()).toEqual({ done: true, value: 3 });
      expect(reports).toEqual([ended]);
    });

    it('is read with for await, too', async () => {
      const { stream, reports } = watch(events());
      const values: unknown[] = [];
      for await (const value of stream) values.push(value);
      expect([values, reports]).toEqual([[1, 2], [ended]]);
    });

    it('reports and hands on the error that it ends with', async () => {
      const { stream, reports } = watch({ next: () => Promise.reject(failure) });
      await expect(stream.next()).rejects.toBe(failure);
      expect(reports).toEqual([failed]);
    });

    it('reports that its reader leaves at once, while it waits for an event that never comes', async () => {
      const gate = new Gate<IteratorResult<unknown>>();
      const { stream, reports } = watch({ ...endless, return: () => gate.passed });
      void stream.next();
      const left = stream.return?.('last');
      expect(reports).toEqual([ended]);
      gate.open({ done: true, value: 'closed' });
      expect(await left).toEqual({ done: true, value: 'closed' });
    });

    it('tells the stream under it what its reader leaves with', async () => {
      const told: unknown[] = [];
      const { stream } = watch({
        ...endless,
        return: async (value) => {
          told.push(value);
          return { done: true, value };
        },
      });
      await stream.return?.('last');
      expect(told).toEqual(['last']);
    });

    it('is done when its reader leaves, if the stream under it does not care', async () => {
      const { stream, reports } = watch(endless);
      expect(await stream.return?.('last')).toEqual({ done: true, value: 'last' });
      expect(reports).toEqual([ended]);
    });

    it('reports at once what its reader throws into it, which the stream may answer', async () => {
      const told: unknown[] = [];
      const { stream, reports } = watch({
        ...endless,
        throw: async (error: unknown) => {
          told.push(error);
          return { done: false, value: 'caught' };
        },
      });
      const answer = stream.throw?.(failure);
      expect(reports).toEqual([failed]);
      expect(await answer).toEqual({ done: false, value: 'caught' });
      expect(told).toEqual([failure]);
    });

    it('fails with what its reader throws into it, if the stream under it does not care', async () => {
      const { stream, reports } = watch(endless);
      await expect(stream.throw?.(failure)).rejects.toBe(failure);
      expect(reports).toEqual([failed]);
    });

    it('asks the stream under it for nothing before it is asked', async () => {
      let asked = 0;
      const { stream, reports } = watch({
        next: async () => {
          asked++;
          return { done: true, value: undefined };
        },
      });
      await turn();
      expect([asked, reports]).toEqual([0, []]);
      await stream.next();
      expect([asked, reports]).toEqual([1, [ended]]);
    });
  });
});
