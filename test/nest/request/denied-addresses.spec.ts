import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  type DecisionEvent,
  LimiterService,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  type RequestLike,
} from '../../../lib/index.js';
import { hashOf } from '../../support/limits/hashed.js';

@Controller()
class Routes {
  get() {}
}

const denied = [{ ip: '203.0.113.0/24' }, { ip: '2001:db8::/32' }];
const forbidden = { status: 403, message: 'Forbidden' };
const clientClosed = { status: 499, message: 'Client Closed Request' };

/** A socket that knows the server's end and not the client's. */
const lost = { localAddress: '10.0.0.1', destroyed: false };

let app: TestingModule | undefined;
const events: DecisionEvent[] = [];

/** What becomes of a request in an app whose lists refuse some addresses. */
async function start(options: RateLimitModuleOptions = { lists: { deny: denied } }) {
  app = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot(options)],
    controllers: [Routes],
  }).compile();
  await app.createNestApplication().init();
  app.get(LimiterService).decisions$.subscribe((event) => events.push(event));
  const guard = app.get(RateLimitGuard);
  const handler = Reflect.get(Routes.prototype, 'get');
  return async (request: RequestLike | undefined) =>
    guard.canActivate(new ExecutionContextHost([request, {}], Routes, handler));
}

afterEach(async () => {
  delete process.env['RATE_LIMIT_MODE'];
  events.length = 0;
  await app?.close();
  app = undefined;
});

describe('an address that is refused whatever it asks for', () => {
  it('is so where no limit is, and others pass', async () => {
    const ask = await start();
    await expect(ask({ ip: '203.0.113.7' })).rejects.toMatchObject(forbidden);
    await expect(ask({ ip: '2001:db8::7' })).rejects.toMatchObject(forbidden);
    for (const ip of ['203.0.114.7', '2001:db9::7']) expect(await ask({ ip })).toBe(true);
  });

  it('is told of as a refusal by the lists of all limits', async () => {
    const ask = await start();
    await expect(ask({ ip: '203.0.113.7' })).rejects.toMatchObject(forbidden);
    await ask({ ip: '203.0.114.7' });
    expect(events).toMatchObject([
      { limit: '*', outcome: 'refused', source: 'list', cost: 1, quota: 1, identity: hashOf('ip:203.0.113.7') },
    ]);
  });

  it('is told of by its network, as limits would count it', async () => {
    const ask = await start({ lists: { deny: denied }, ipv6Prefix: 48 });
    await expect(ask({ ip: '2001:db8:1:2::7' })).rejects.toMatchObject(forbidden);
    expect(events.map(({ identity }) => identity)).toEqual([hashOf('ip:2001:db8:1::')]);
  });

  it('is let in and told of while RATE_LIMIT_MODE is shadow', async () => {
    process.env['RATE_LIMIT_MODE'] = 'shadow';
    const ask = await start();
    expect(await ask({ ip: '203.0.113.7' })).toBe(true);
    expect(events).toMatchObject([{ limit: '*', outcome: 'shadow-refused' }]);
  });
});

describe('a request without an address', () => {
  it.each<[string, RequestLike | undefined]>([
    ['has none of its own', {}],
    ['has an empty one', { ip: '' }],
    ['has a socket that never had one', { ip: undefined, socket: {} }],
    ['is of no kind that has one', undefined],
  ])('passes where lists refuse addresses, if it %s', async (_, request) => {
    const ask = await start();
    expect(await ask(request)).toBe(true);
    expect(events).toEqual([]);
  });

  it.each([
    ['whose connection is open', lost],
    ['whose connection is closed', { destroyed: true }],
  ])('that has lost it, and %s, does not pass', async (_, socket) => {
    const ask = await start();
    await expect(ask({ socket })).rejects.toMatchObject(clientClosed);
  });

  it('that has lost it passes while RATE_LIMIT_MODE is shadow, since nothing is refused then', async () => {
    process.env['RATE_LIMIT_MODE'] = 'shadow';
    const ask = await start();
    expect(await ask({ socket: lost })).toBe(true);
  });

  it('that has lost it passes where no list refuses addresses', async () => {
    const ask = await start({ lists: { deny: [{ identity: 'tenant:acme' }] } });
    expect(await ask({ socket: lost })).toBe(true);
  });
});
