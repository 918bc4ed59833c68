import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type CanActivate, Controller, type ExecutionContext, Get, Injectable, Post, UseGuards } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { type LimitDefinition, RateLimit } from '../../lib/index.js';
import { type AppOptions, adapters, HttpApp } from './http-app.js';
import { Gate } from '../support/time/gate.js';
import { until } from '../support/time/until.js';

/** Keeps requests waiting before anyone learns of them, as a look into a database does. */
@Injectable()
class SlowGuard implements CanActivate {
  static reached = 0;
  static gate = new Gate();

  async canActivate(): Promise<boolean> {
    SlowGuard.reached++;
    await SlowGuard.gate.passed;
    return true;
  }
}

/** Finds a user in a header. */
@Injectable()
class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: unknown }>();
    request.user = { plan: request.headers['x-plan'] };
    return true;
  }
}

let handled = 0;
const burst = { name: 'burst', algo: 'fixed-window', rate: 2, interval: '1m' } satisfies LimitDefinition;

@Controller()
class Routes {
  @Post('codes')
  @UseGuards(SlowGuard)
  @RateLimit({ name: 'codes', algo: 'sliding-log', rate: 2, interval: '15m', key: 'user' })
  send(): void {
    handled++;
  }

  @Get('shaped')
  @RateLimit({ name: 'shaped', algo: 'leaky-bucket', rate: 1, interval: '1h', queue: 10 })
  shaped(): void {
    handled++;
  }

  @Get('free')
  free(): void {
    handled++;
  }

  @Get('by-plan')
  @RateLimit((context: ExecutionContext) => {
    const { user } = context.switchToHttp().getRequest<{ user: { plan: string } }>();
    return { ...burst, rate: user.plan === 'gold' ? 100 : 2 };
  })
  byPlan(): void {
    handled++;
  }
}

describe.each(adapters)('never more than a limit says, over %s', (framework) => {
  let app: HttpApp;
  /** Ports of clients whose connections have ended, as the server knows. */
  const ended = new Set<number>();
  const start = async (options: Partial<AppOptions> = {}) => {
    handled = 0;
    ended.clear();
    app = await HttpApp.start(framework, { controllers: [Routes], ...options });
    const server = app.nest.getHttpServer() as Server;
    server.on('connection', (socket: Socket) => {
      const port = socket.remotePort!;
      socket.once('close', () => ended.add(port));
    });
  };
  afterEach(() => app.close());

  /** Ends connections, and resolves once the server knows. */
  async function leave(...sockets: Socket[]): Promise<void> {
    const ports = sockets.map(({ localPort }) => localPort!);
    for (const socket of sockets) socket.resetAndDestroy();
    await until(() => ports.every((port) => ended.has(port)));
  }

  /** Sends a request and says when it is on its way. */
  async function send(request: string): Promise<Socket> {
    const { hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.write(`${request}\r\nHost: x\r\nContent-Length: 0\r\n\r\n`, resolve));
    return socket;
  }

  it('a client that leaves before its address is read does not pass', async () => {
    SlowGuard.reached = 0;
    SlowGuard.gate = new Gate();
    await start();
    for (let i = 1; i <= 10; i++) {
      const socket = await send('POST /codes HTTP/1.1');
      await until(() => SlowGuard.reached === i);
      await leave(socket);
    }
    SlowGuard.gate.open();
    // What follows the guard has been decided once another request is answered.
    await app.get('/shaped');
    expect(handled - 1).toBeLessThanOrEqual(2);
  });

  it.each<LimitDefinition>([
    { name: 'all', algo: 'fixed-window', rate: 5, interval: '1m' },
    { name: 'all', algo: 'sliding-window', rate: 5, interval: '1m' },
    { name: 'all', algo: 'sliding-log', rate: 5, interval: '1m' },
    { name: 'all', algo: 'token-bucket', rate: 5, interval: '1m' },
    { name: 'all', algo: 'gcra', rate: 5, interval: '1m' },
  ])('units of a held request from an earlier window are not given back, $algo', async (limit) => {
    await start({ limits: { limits: [limit] } });
    await app.get('/shaped');
    const held = await Promise.all(Array.from({ length: 4 }, () => send('GET /shaped HTTP/1.1')));
    await until(async () => (await app.get('/free')).status === 429);
    app.clock.advance('5m');
    expect(await app.statuses(6, '/free')).toEqual([200, 200, 200, 200, 200, 429]);
    await leave(...held);
    expect(await app.statuses(2, '/free')).toEqual([429, 429]);
  });

  it('units of a held request from the same window are given back', async () => {
    await start({ limits: { limits: [{ name: 'all', algo: 'fixed-window', rate: 5, interval: '1m' }] } });
    await app.get('/shaped');
    const check = jest.spyOn(app.store, 'check');
    const held = await Promise.all(Array.from({ length: 4 }, () => send('GET /shaped HTTP/1.1')));
    await until(async () => check.mock.calls.length === 4);
    await Promise.all(check.mock.results.map(({ value }) => value));
    expect(await app.statuses(1, '/free')).toEqual([429]);
    for (const socket of held) socket.resetAndDestroy();
    await until(async () => (await app.get('/free')).status === 200);
    expect(await app.statuses(4, '/free')).toEqual([200, 200, 200, 429]);
  });

  describe('a function of the user', () => {
    it.each<[string, Partial<AppOptions>]>([
      ['that an APP_GUARD finds', { providers: [{ provide: APP_GUARD, useClass: UserGuard }] }],
      ['that a global guard finds', { configure: (nest) => nest.useGlobalGuards(new UserGuard()) }],
    ])('%s gives the limit', async (_, options) => {
      await start(options);
      const gold = await app.get('/by-plan', { 'x-plan': 'gold' });
      expect(gold.status).toBe(200);
      expect(gold.headers.get('ratelimit-policy')).toBe('"burst";q=100;w=60');
      expect(await app.statuses(2, '/by-plan', { 'x-plan': 'free' })).toEqual([200, 429]);
    });

    it('replaces a farther limit of its name, whose units are given back', async () => {
      await start({
        limits: { limits: [{ ...burst, rate: 1 }] },
        providers: [{ provide: APP_GUARD, useClass: UserGuard }],
      });
      for (let i = 0; i < 3; i++) {
        const response = await app.get('/by-plan', { 'x-plan': 'gold' });
        expect(response.status).toBe(200);
        expect(response.headers.get('ratelimit-policy')).toBe('"burst";q=100;w=60');
        expect(response.headers.get('ratelimit')).toMatch(new RegExp(`^"burst";r=${99 - i};t=\\d+$`));
      }
    });
  });
});
