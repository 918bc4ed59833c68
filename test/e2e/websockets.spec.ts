import type { IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, Injectable, type PipeTransform, UseGuards } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import {
  ConnectedSocket,
  MessageBody,
  type OnGatewayConnection,
  SubscribeMessage,
  WebSocketGateway,
} from '@nestjs/websockets';
import { NEVER, type Observable } from 'rxjs';
import {
  type CheckResult,
  type LimitDefinition,
  LimiterService,
  RateLimit,
  RateLimitDecision,
  RateLimitGuard,
  type RateLimitModuleExtras,
  type RateLimitModuleOptions,
} from '../../lib/index.js';
import { until } from '../support/time/until.js';
import { HttpApp } from './http-app.js';
import { connect, type GatewayClient, libraries } from './websocket-clients.js';

/** What the handlers wait for. */
const work = { reached: 0, leave: () => {}, gate: Promise.resolve() };

interface Client {
  data?: { user?: object };
  user?: object;
  request?: IncomingMessage | undefined;
}

/** Believes what a message says of its sender, where socket.io or ws keep it. */
@Injectable()
class MessageAuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const client = context.switchToWs().getClient<Client>();
    const { user } = context.switchToWs().getData<{ user?: string }>();
    if (user === undefined) return true;
    if (client.data === undefined) client.user = { id: user };
    else client.data.user = { id: user };
    return true;
  }
}

@Injectable()
class SlowPipe implements PipeTransform {
  async transform(value: unknown): Promise<unknown> {
    work.reached++;
    await work.gate;
    return value;
  }
}

const minute = { algo: 'fixed-window', rate: 2, interval: '1m' } as const;
const define = {
  address: minute,
  person: { ...minute, rate: 1, key: 'user', onMissingKey: 'refuse' },
  partner: { ...minute, rate: 1, key: 'header:x-partner', onMissingKey: 'skip' },
  slots: { algo: 'concurrency', limit: 1, ttl: '30s' },
} satisfies Record<string, LimitDefinition>;

class Handlers implements OnGatewayConnection {
  /** With ws, nobody else keeps the request of the handshake; and only the app knows which proxy to believe. */
  handleConnection(client: Client, request?: IncomingMessage): void {
    client.request ??= request;
    const ip = client.request?.headers['x-from-our-proxy'];
    if (ip !== undefined) Object.assign(client.request as object, { ip });
  }

  @SubscribeMessage('address')
  @RateLimit('address')
  byAddress(@RateLimitDecision() decision: CheckResult | undefined) {
    return { event: 'answer', data: decision?.tightest.remaining };
  }

  @SubscribeMessage('person')
  @UseGuards(MessageAuthGuard)
  @RateLimit('person')
  byPerson(@MessageBody('user') user: string) {
    return { event: 'answer', data: user };
  }

  @SubscribeMessage('partner')
  @RateLimit('partner')
  byPartner() {
    return { event: 'answer', data: 'partner' };
  }

  @SubscribeMessage('by plan')
  @UseGuards(MessageAuthGuard)
  @RateLimit((context) => {
    const { user, data } = context.switchToWs().getClient<Client>();
    const { id } = (user ?? data?.user ?? {}) as { id?: string };
    return { ...minute, name: 'plan', key: 'user', rate: id === 'partner' ? 3 : 1 };
  })
  byPlan() {
    return { event: 'answer', data: 'plan' };
  }

  @SubscribeMessage('slow')
  @RateLimit('slots')
  async slow() {
    work.reached++;
    await work.gate;
    return { event: 'answer', data: 'slow' };
  }

  @SubscribeMessage('piped')
  @RateLimit('slots')
  piped(@MessageBody(SlowPipe) _data: unknown) {
    work.reached++;
  }

  @SubscribeMessage('broken')
  @RateLimit('slots')
  broken() {
    throw new TypeError('a bug');
  }

  @SubscribeMessage('endless')
  @RateLimit('slots')
  endless(@ConnectedSocket() _client: unknown): Observable<unknown> {
    work.reached++;
    return NEVER;
  }
}

/** The one line that a gateway needs. */
@WebSocketGateway()
@UseGuards(RateLimitGuard)
class BoundGateway extends Handlers {}

@WebSocketGateway()
class BareGateway extends Handlers {}

const CLIENT = 'ip:127.0.0.1';
/** What is told of a lease depends on how long leases were held. */
const aWhile = expect.any(Number) as unknown as number;

const refusal = (limits: string[], retryAfterMs: number) => ({
  event: 'exception',
  data: {
    status: 'error',
    statusCode: 429,
    message: 'Too many requests',
    error: 'Too Many Requests',
    limits,
    retryAfterMs,
  },
});

describe.each(libraries)('a gateway of %s', (library) => {
  let app: HttpApp | undefined;
  const clients: GatewayClient[] = [];

  afterEach(async () => {
    work.leave();
    for (const client of clients.splice(0)) client.close();
    await app?.close();
    app = undefined;
  });

  async function start(gateway: typeof Handlers, limits: RateLimitModuleOptions & RateLimitModuleExtras = {}) {
    work.reached = 0;
    work.gate = new Promise((resolve) => (work.leave = resolve));
    const started = await HttpApp.start('express', {
      providers: [gateway],
      limits: { define, ...limits },
      configure: (nest) => library === 'ws' && nest.useWebSocketAdapter(new WsAdapter(nest)),
    });
    app = started;
    const service = started.nest.get(LimiterService);
    return {
      clock: started.clock,
      left: async (name: string, key = CLIENT) => (await service.for(name).peek(key)).remaining,
      connected: async (headers?: Record<string, string>) => {
        const client = await connect(library, started.url, headers);
        clients.push(client);
        const ask = (event: string, data: unknown = {}) => {
          client.send(event, data);
          return client.next();
        };
        return { ...client, ask };
      },
    };
  }

  // Nest 12 lets global guards and interceptors reach gateways; Nest 11 does not.
  describe.each([
    ['with @UseGuards(RateLimitGuard)', BoundGateway, {}],
    ['with @UseGuards(RateLimitGuard) alone', BoundGateway, { guard: false }],
    ['with the global guard alone', BareGateway, {}],
  ] as const)('%s', (_, gateway, extras) => {
    it('counts messages by the address of the handshake, and refuses with an event', async () => {
      const { connected, clock, left } = await start(gateway, extras);
      const [one, other] = [await connected(), await connected()];
      expect(await one.ask('address')).toEqual({ event: 'answer', data: 1 });
      expect(await other.ask('address')).toEqual({ event: 'answer', data: 0 });
      clock.advanceMs(15_000);
      expect(await one.ask('address')).toEqual(refusal(['address'], 45_000));
      expect(await left('address')).toBe(0);
      clock.advanceMs(45_000);
      expect(await one.ask('address')).toEqual({ event: 'answer', data: 1 });
    });

    it('counts by the user that a later guard finds', async () => {
      const { connected, left } = await start(gateway, extras);
      const [client, nobody] = [await connected(), await connected()];
      expect(await client.ask('person', { user: 'ada' })).toEqual({ event: 'answer', data: 'ada' });
      expect(await client.ask('person', { user: 'ada' })).toEqual(refusal(['person'], 60_000));
      expect(await client.ask('person', { user: 'bob' })).toEqual({ event: 'answer', data: 'bob' });
      expect([await left('person', 'user:ada'), await left('person', 'user:bob')]).toEqual([0, 0]);
      expect(await nobody.ask('person')).toMatchObject({
        event: 'exception',
        data: { status: 'error', statusCode: 401, message: 'Authentication is required' },
      });
    });

    it('asks functions after the guards', async () => {
      const { connected } = await start(gateway, extras);
      const client = await connected();
      const events = async (user: string) => [
        (await client.ask('by plan', { user })).event,
        (await client.ask('by plan', { user })).event,
      ];
      expect(await events('ada')).toEqual(['answer', 'exception']);
      expect(await events('partner')).toEqual(['answer', 'answer']);
    });

    it('counts by a header of the handshake', async () => {
      const { connected } = await start(gateway, extras);
      const [one, other, none] = [
        await connected({ 'X-Partner': 'one' }),
        await connected({ 'X-Partner': 'other' }),
        await connected(),
      ];
      for (const client of [one, other, none]) expect((await client.ask('partner')).event).toBe('answer');
      expect([(await one.ask('partner')).event, (await none.ask('partner')).event]).toEqual(['exception', 'answer']);
    });

    it('holds something until the handler ends, fails, or its client goes away', async () => {
      const { connected, left } = await start(gateway, extras);
      const [inside, outside] = [await connected(), await connected()];
      inside.send('slow', {});
      await until(() => work.reached === 1);
      expect(await outside.ask('slow')).toEqual(refusal(['slots'], aWhile));
      work.leave();
      expect(await inside.next()).toEqual({ event: 'answer', data: 'slow' });
      await until(async () => (await left('slots')) === 1);
      expect((await outside.ask('broken')).data).toMatchObject({ message: 'Internal server error' });
      await until(async () => (await left('slots')) === 1);
      inside.send('endless', {});
      await until(() => work.reached === 2);
      expect(await outside.ask('slow')).toEqual(refusal(['slots'], aWhile));
      inside.close();
      await until(async () => (await left('slots')) === 1);
    });

    it('holds something as long as the handler runs, though its clients have left', async () => {
      const { connected, left } = await start(gateway, extras);
      for (let round = 0; round < 3; round++) {
        const leaving = await connected();
        leaving.send('slow', {});
        if (round > 0) expect(await leaving.next()).toEqual(refusal(['slots'], aWhile));
        await until(() => work.reached > 0);
        leaving.close();
      }
      expect([work.reached, await left('slots')]).toEqual([1, 0]);
      work.leave();
      await until(async () => (await left('slots')) === 1);
    });

    it('holds something while a pipe is at work whose client has left, and then runs no handler', async () => {
      const { connected, left } = await start(gateway, extras);
      const leaving = await connected();
      leaving.send('piped', {});
      await until(() => work.reached === 1);
      leaving.close();
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      expect(await left('slots')).toBe(0);
      work.leave();
      await until(async () => (await left('slots')) === 1);
      // The pipe reached it, and the handler did not.
      expect(work.reached).toBe(1);
    });
  });

  it('believes the address that the app gave the request of the handshake', async () => {
    const { connected, left } = await start(BoundGateway);
    const behindProxy = await connected({ 'X-From-Our-Proxy': '203.0.113.7' });
    expect(await behindProxy.ask('address')).toEqual({ event: 'answer', data: 1 });
    expect([await left('address', 'ip:203.0.113.7'), await left('address')]).toEqual([1, 2]);
  });

  it('charges a message once, however often the guard is bound', async () => {
    const { connected, left } = await start(BoundGateway);
    await (await connected()).ask('address');
    expect(await left('address')).toBe(1);
  });
});
