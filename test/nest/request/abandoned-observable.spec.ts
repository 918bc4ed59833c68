import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
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
import { partOfCall } from '../../../lib/nest/request/abandoned-observable.js';
import { CallRun } from '../../../lib/nest/request/call-run.js';
import { Gate } from '../../support/time/gate.js';

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
