import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { BehaviorSubject, lastValueFrom, merge, type Observable, of, race, repeat, Subject, take } from 'rxjs';
import { Gate } from '../../support/time/gate.js';
import { HandlerCall } from './handler-call.js';

const failure = new Error('failed');
const never = new Promise(() => {});

const callOther = ({ other }: { other: () => unknown }) => {
  void other();
  return 'done';
};

/** What a listener is told, and how it leaves. */
function listen(answer: Observable<unknown>) {
  const told: unknown[] = [];
  const listener = answer.subscribe({
    next: (value) => told.push(value),
    error: (error: unknown) => told.push(error),
    complete: () => told.push('complete'),
  });
  return { told, leave: () => listener.unsubscribe() };
}

describe('the run of a handler', () => {
  it.each([
    ['a value', () => 'done'],
    ['a promise', () => Promise.resolve('done')],
  ])('ends well with %s, which is handed on', async (_, work) => {
    const call = new HandlerCall(work);
    const { told } = listen(await call.answer());
    await turn();
    expect(told).toEqual(['done', 'complete']);
    expect(call.ends).toMatchObject([{ failed: false, aborted: false }]);
  });

  it.each([
    [
      'throws',
      () => {
        throw failure;
      },
    ],
    ['rejects', () => Promise.reject(failure)],
  ])('failed if its handler %s, with the error', async (_, work) => {
    const call = new HandlerCall(work);
    const { told } = listen(await call.answer());
    await turn();
    expect(told).toEqual([failure]);
    expect(call.ends).toMatchObject([{ failed: true, aborted: false, error: failure }]);
  });

  it('ends with the stream of an Observable', async () => {
    const values = new Subject<number>();
    const call = new HandlerCall(() => values);
    const { told } = listen(await call.answer());
    await turn();
    values.next(1);
    values.next(2);
    expect(call.ends).toEqual([]);
    values.complete();
    expect(told).toEqual([1, 2, 'complete']);
    expect(call.ends).toMatchObject([{ failed: false, aborted: false }]);
  });

  it('was aborted if its listener leaves, at once if the handler has given no promise', async () => {
    const call = new HandlerCall(() => new Subject());
    const { leave } = listen(await call.answer());
    await turn();
    leave();
    expect(call.ends).toMatchObject([{ failed: true, aborted: true }]);
  });

  it.each<[string, () => unknown]>([
    ['a value', () => 'done'],
    ['a promise', () => Promise.resolve('done')],
    ['an Observable that goes on', () => new BehaviorSubject('done')],
    ['an Observable that gives values without a pause', () => of('done').pipe(repeat())],
  ])('ends well if an interceptor around it leaves with the first value of %s', async (_, work) => {
    const call = new HandlerCall(work);
    const { told } = listen((await call.answer()).pipe(take(1)));
    await turn();
    expect(told).toEqual(['done', 'complete']);
    expect(call.ends).toMatchObject([{ failed: false, aborted: false }]);
  });

  it.each<[string, (gate: Gate) => void]>([
    ['succeeded', (gate) => gate.open()],
    ['failed', (gate) => gate.fail(failure)],
  ])('that nobody listens to any more ends once its handler has %s', async (_, settle) => {
    const gate = new Gate();
    const call = new HandlerCall(() => gate.passed);
    const { told, leave } = listen(await call.answer());
    await turn();
    leave();
    await turn();
    expect(call.ends).toEqual([]);
    settle(gate);
    await turn();
    expect(told).toEqual([]);
    expect(call.ends).toMatchObject([{ failed: true, aborted: true }]);
  });

  it('that an interceptor gives up has failed, once its handler is done', async () => {
    const [gate, timeout] = [new Gate(), new Subject()];
    const call = new HandlerCall(() => gate.passed);
    const within = [
      { intercept: (_: unknown, next: { handle(): Observable<unknown> }) => merge(next.handle(), timeout) },
    ];
    const { told } = listen(await call.answer({ within }));
    await turn();
    timeout.error(failure);
    expect(told).toEqual([failure]);
    expect(call.ends).toEqual([]);
    gate.open();
    await turn();
    expect(call.ends).toMatchObject([{ failed: true, aborted: false, error: failure }]);
  });

  it('that an interceptor answers in the place of ends well, once its handler is done', async () => {
    const [gate, timeout] = [new Gate(), new Subject()];
    const call = new HandlerCall(() => gate.passed);
    const within = [
      { intercept: (_: unknown, next: { handle(): Observable<unknown> }) => race(next.handle(), timeout) },
    ];
    const { told } = listen(await call.answer({ within }));
    await turn();
    timeout.next('another answer');
    timeout.complete();
    expect(told).toEqual(['another answer', 'complete']);
    expect(call.ends).toEqual([]);
    gate.open();
    await turn();
    expect(call.ends).toMatchObject([{ failed: false, aborted: false }]);
  });

  it.each<[string, (timeout: Subject<unknown>, leave: () => void) => void, object]>([
    ['answered', (timeout) => timeout.complete(), { failed: false, aborted: false }],
    ['failed', (timeout) => timeout.error(failure), { failed: true, error: failure }],
    ['was left', (_, leave) => leave(), { failed: true, aborted: true }],
  ])('that %s waits ten minutes for its handler, and no longer', async (_, giveUp, end) => {
    jest.useFakeTimers();
    const timeout = new Subject();
    const call = new HandlerCall(() => never);
    const within = [
      { intercept: (__: unknown, next: { handle(): Observable<unknown> }) => race(next.handle(), timeout) },
    ];
    const { leave } = listen(await call.answer({ within }));
    await turn();
    timeout.next('another answer');
    giveUp(timeout, leave);
    jest.advanceTimersByTime(599_999);
    expect(call.ends).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(call.ends).toMatchObject([end]);
  });

  it('whose listener leaves before the handler is called refuses to call it', async () => {
    const gate = new Gate();
    let calls = 0;
    const call = new HandlerCall(() => calls++);
    const { leave } = listen(await call.answer({ before: () => gate.passed }));
    await turn();
    leave();
    gate.open();
    await turn();
    expect(calls).toBe(0);
    expect(call.ends).toMatchObject([{ failed: true, aborted: true }]);
  });

  it('waits for nothing that its handler calls of its own', async () => {
    const gate = new Gate();
    const work = async ({ other }: { other: () => unknown }) => {
      await gate.passed;
      void other();
      return 'done';
    };
    const call = new HandlerCall(work, { other: () => never });
    const answered = lastValueFrom(await call.answer());
    gate.open();
    expect(await answered).toBe('done');
    await turn();
    expect(call.ends).toMatchObject([{ failed: false }]);
  });

  it('lets what its handler calls go on after its listener has left', async () => {
    const gate = new Gate();
    const work = async ({ other }: { other: () => unknown }) => {
      await gate.passed;
      return other();
    };
    let calls = 0;
    const call = new HandlerCall(work, { other: () => calls++ });
    const { leave } = listen(await call.answer());
    await turn();
    leave();
    gate.open();
    await turn();
    expect(calls).toBe(1);
  });

  it('is that of its handler alone: one that reports no promise leaves none to what it calls', async () => {
    const call = new HandlerCall(callOther, { other: () => never, reports: ['other'] });
    const { told } = listen(await call.answer());
    await turn();
    expect(told).toEqual(['done', 'complete']);
    expect(call.ends).toMatchObject([{ failed: false }]);
  });

  it('begins no lazy query by looking at its end', async () => {
    let queries = 0;
    const query = {
      // oxlint-disable-next-line unicorn/no-thenable
      then(resolve: (rows: string) => void) {
        queries++;
        resolve('rows');
      },
    };
    const call = new HandlerCall(() => query);
    const { told } = listen(await call.answer());
    await turn();
    expect(told).toEqual(['rows', 'complete']);
    expect(call.ends).toMatchObject([{ failed: false }]);
    expect(queries).toBe(1);
  });
});

async function* events(failed?: Error) {
  yield 'event';
  if (failed !== undefined) throw failed;
}

async function streamOf(call: HandlerCall, type: string): Promise<AsyncIterable<unknown>> {
  const value = await lastValueFrom(await call.answer({ type }));
  await turn();
  return value as AsyncIterable<unknown>;
}

const read = async (stream: AsyncIterable<unknown>) => {
  const values: unknown[] = [];
  for await (const value of stream) values.push(value);
  return values;
};

describe('a stream that a handler gives', () => {
  it('ends the run of a GraphQL subscription as it ends', async () => {
    const call = new HandlerCall(() => events());
    const stream = await streamOf(call, 'graphql');
    expect(call.ends).toEqual([]);
    expect(await read(stream)).toEqual(['event']);
    expect(call.ends).toMatchObject([{ failed: false, aborted: false }]);
  });

  it('fails the run of a GraphQL subscription with its error', async () => {
    const call = new HandlerCall(() => events(failure));
    await expect(read(await streamOf(call, 'graphql'))).rejects.toBe(failure);
    expect(call.ends).toMatchObject([{ failed: true, aborted: false, error: failure }]);
  });

  it('is a value like any other elsewhere', async () => {
    const made = events();
    const call = new HandlerCall(() => made);
    expect(await streamOf(call, 'http')).toBe(made);
    expect(call.ends).toMatchObject([{ failed: false }]);
  });

  it('is not needed over GraphQL: a query ends with its answer', async () => {
    const call = new HandlerCall(() => ({ id: 7 }));
    expect(await streamOf(call, 'graphql')).toEqual({ id: 7 });
    expect(call.ends).toMatchObject([{ failed: false }]);
  });
});
