import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, type INestApplicationContext, type ModuleMetadata, type Type } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { Test } from '@nestjs/testing';
import * as ours from '../../lib/index.js';
import { anotherCopy } from '../support/nest/another-copy.js';

type Copy = typeof ours;
type Outbound = typeof import('../../lib/integrations/outbound/index.js');
type Sockets = typeof import('../../lib/integrations/sockets/index.js');

let opened: INestApplicationContext[] = [];
afterEach(async () => {
  for (const app of opened) await app.close();
  opened = [];
});

async function started(metadata: ModuleMetadata): Promise<INestApplicationContext> {
  const app = (await Test.createTestingModule(metadata).compile()).createNestApplication();
  opened.push(app);
  await app.init();
  return app;
}

/** A class that injects another. */
function userOf(type: Type): Type {
  class Mails {
    constructor(@Inject(type) readonly used: object) {}
  }
  return Mails;
}

const elsewhere = (name: string) => ({
  name: 'RateLimitConfigError',
  code: 'SLUICE_TWO_COPIES',
  message: expect.stringMatching(
    new RegExp(`^${name}: it comes from another copy of nestjs-sluice than the RateLimitModule`),
  ),
});

describe('an app with two copies of the package', () => {
  it.each(['LimiterService', 'RateLimitGuard', 'OutboundLimiter'])(
    'does not start if it injects a %s of the other',
    async (name) => {
      const [index, outbound] = anotherCopy<[Copy, Outbound]>('index.js', 'integrations/outbound/index.js');
      const classes: Readonly<Record<string, Type>> = {
        LimiterService: index.LimiterService,
        RateLimitGuard: index.RateLimitGuard,
        OutboundLimiter: outbound.OutboundLimiter as Type,
      };
      const starting = started({ imports: [ours.RateLimitModule.forRoot()], providers: [userOf(classes[name]!)] });
      await expect(starting).rejects.toMatchObject(elsewhere(name));
    },
  );

  it('starts if it only loads the other', async () => {
    anotherCopy('index.js');
    const Mails = userOf(ours.LimiterService);
    const app = await started({
      imports: [ours.RateLimitModule.forRootAsync({ useFactory: () => ({}) })],
      providers: [Mails],
    });
    expect(app.get<{ used: unknown }>(Mails).used).toBeInstanceOf(ours.LimiterService);
  });

  it.each(['first', 'last'])('has both if it sets up the module of each, its own %s', async (order) => {
    const [copy] = anotherCopy<[Copy]>('index.js');
    const made = order === 'first' ? [ours, copy] : [copy, ours];
    const imports = made.map(({ RateLimitModule }) => RateLimitModule.forRoot());
    const users = [userOf(ours.LimiterService), userOf(copy.LimiterService)];
    // A module that only has them since those of the package are global.
    class MailsModule {}
    const app = await started({ imports: [...imports, { module: MailsModule, providers: users }] });
    const [own, other] = users.map((type) => app.get<{ used: unknown }>(type).used);
    expect(own).toBeInstanceOf(ours.LimiterService);
    expect(other).toBeInstanceOf(copy.LimiterService);
  });

  it('says so of sockets that find the module of the other only', async () => {
    const [, { rateLimitSockets }] = anotherCopy<[Copy, Sockets]>('index.js', 'integrations/sockets/index.js');
    const app = await started({ imports: [ours.RateLimitModule.forRoot()] });
    const limit = { algo: 'fixed-window', rate: 1, interval: '1m' } as const;
    expect(() => rateLimitSockets(app, new IoAdapter(app), { handshakes: limit })).toThrow(
      expect.objectContaining(elsewhere('rateLimitSockets')),
    );
  });
});
