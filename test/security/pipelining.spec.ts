import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Get, Sse, UseGuards } from '@nestjs/common';
import { NEVER } from 'rxjs';
import { LimiterService, RateLimit } from '../../lib/index.js';
import { adapters, HttpApp } from '../e2e/http-app.js';
import { until } from '../support/time/until.js';

/** For what takes no time, on machines that are busy with other things. */
const SLACK_MS = 20_000;
const SLOTS = 3;
const define = {
  slots: { algo: 'concurrency', limit: SLOTS, ttl: '1h', key: 'global' },
  'late-slots': { algo: 'concurrency', limit: SLOTS, ttl: '1h', key: 'global', phase: 'authenticated' },
  held: { algo: 'leaky-bucket', rate: 1, interval: '1h', key: 'global' },
} as const;

const work = { asked: 0, ran: 0, release: [] as (() => void)[] };

/** Goes on once the client has left. */
class SlowGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    work.asked++;
    await once(context.switchToHttp().getRequest<IncomingMessage>().socket, 'close');
    return true;
  }
}

@Controller()
class WorkController {
  @Sse('stream')
  stream() {
    return NEVER;
  }

  @Get('quick')
  @RateLimit('slots')
  quick() {
    work.ran++;
  }

  @Get('slow')
  @RateLimit('slots')
  async slow() {
    work.ran++;
    await new Promise<void>((resolve) => work.release.push(resolve));
  }

  @Get('late')
  @UseGuards(SlowGuard)
  @RateLimit('late-slots')
  late() {
    work.ran++;
  }

  @Get('held')
  @RateLimit('held')
  held() {
    work.ran++;
  }
}

/** Node answers in turn what a client sends at once: while an earlier answer goes on, a later one has no socket. */
describe.each(adapters)('requests behind one whose answer goes on, over %s', (framework) => {
  let app: HttpApp;
  let socket: Socket;
  beforeEach(async () => {
    Object.assign(work, { asked: 0, ran: 0, release: [] });
    app = await HttpApp.start(framework, { controllers: [WorkController], limits: { define } });
    socket = connect(Number(new URL(app.url).port), '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
  });
  afterEach(async () => {
    socket.destroy();
    for (const release of work.release) release();
    await app.close();
  });

  const send = (path: string, count = SLOTS) =>
    socket.write(
      ['/stream', ...Array<string>(count).fill(path)].map((each) => `GET ${each} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''),
    );
  const left = async (name: string) => (await app.nest.get(LimiterService).for(name).peek('global')).remaining;
  const allows = async () => (await app.nest.get(LimiterService).for('held').peek('global')).allowed;
  const free = (name: string) => until(async () => (await left(name)) === SLOTS, SLACK_MS);

  it('free what they held when the client leaves', async () => {
    send('/quick');
    await until(() => work.ran === SLOTS, SLACK_MS);
    expect(await left('slots')).toBe(0);
    socket.resetAndDestroy();
    await free('slots');
    expect(await app.statuses(2, '/quick')).toEqual([200, 200]);
  });

  it('hold it until their handlers are done, too', async () => {
    send('/slow');
    await until(() => work.ran === SLOTS, SLACK_MS);
    socket.resetAndDestroy();
    work.release.pop()?.();
    await until(async () => (await left('slots')) === 1, SLACK_MS);
    for (const release of work.release.splice(0)) release();
    await free('slots');
  });

  it('run nothing if the client leaves before', async () => {
    send('/late');
    await until(() => work.asked === SLOTS, SLACK_MS);
    socket.resetAndDestroy();
    const closed = app.nest.getHttpServer() as { getConnections(tell: (error: unknown, count: number) => void): void };
    await until(() => new Promise((resolve) => closed.getConnections((_, count) => resolve(count === 0))), SLACK_MS);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect([work.ran, await left('late-slots')]).toEqual([0, SLOTS]);
  });

  it('are held no longer when the client leaves', async () => {
    send('/held', 2);
    await until(async () => !(await allows()), SLACK_MS);
    socket.resetAndDestroy();
    // The place of the one that waited is given back.
    await until(allows, SLACK_MS);
    expect(work.ran).toBe(1);
  });
});
