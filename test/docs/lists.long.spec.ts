import { afterEach, expect, it } from '@jest/globals';
import { Controller, Get } from '@nestjs/common';
import { RateLimit, RateLimitModule } from '../../lib/index.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

@Controller()
class ApiController {
  @Get()
  @RateLimit('api')
  get() {
    return 'ok';
  }
}

let app: TriedApp | undefined;
afterEach(() => app?.close());

it('the calls of the guide refuse and exempt', async () => {
  const module = RateLimitModule.forRoot({ define: { api: { algo: 'gcra', rate: 100, interval: '1m' } } });
  app = await TriedApp.start({ imports: [module], controllers: [ApiController] });
  const { limiters } = app;
  await limiters.deny({ ip: '203.0.113.0/24' }, { expiresIn: '1h', by: 'eva', reason: 'scraping' }); // for all limits
  await limiters.deny({ identity: 'tenant:acme' }, { limit: 'api' });
  await limiters.allow({ pattern: 'tenant:partner-*' }, { limit: 'api' }); // all keys with this prefix

  const told = await limiters.listEntries({ ip: '203.0.113.7' }); // { entries: [{ entry: { ip: '203.0.113.0/24' }, list: 'deny', by: 'eva', … }] }
  expect(told.entries).toMatchObject([{ entry: { ip: '203.0.113.0/24' }, list: 'deny', by: 'eva' }]);
  const consume = (key: string) => limiters.for('api').consume(key);
  expect(await consume('tenant:acme')).toMatchObject({ allowed: false, source: 'list' });
  expect(await consume('tenant:partner-1')).toMatchObject({ allowed: true, source: 'list' });
  expect(await app.statuses(1)).toEqual([200]);

  await limiters.unlist({ ip: '203.0.113.0/24' });
  expect((await limiters.listEntries({ ip: '203.0.113.7' })).entries[0]).toBeUndefined();
});

it('the options of the guide hold from the start', async () => {
  const module = RateLimitModule.forRoot({
    define: { api: { algo: 'gcra', rate: 100, interval: '1m' } },
    lists: {
      allow: [{ ip: '10.0.0.0/8', reason: 'our own network' }],
      deny: [{ ip: '198.51.100.7' }, { pattern: 'trial:*', limit: 'api' }],
    },
  });
  app = await TriedApp.start({ imports: [module], controllers: [ApiController] });
  const { limiters } = app;
  expect((await limiters.listEntries({ ip: '10.1.2.3' })).entries[0]).toMatchObject({
    list: 'allow',
    reason: 'our own network',
  });
  expect((await limiters.listEntries({ ip: '198.51.100.7' })).entries[0]).toMatchObject({ list: 'deny' });
  expect(await limiters.for('api').consume('trial:1')).toMatchObject({ allowed: false, source: 'list' });
});

it('is the code of the guide, word for word', () => {
  expect(untriedCode('docs/guides/lists.md', 'test/docs/lists.long.spec.ts', 'started')).toEqual([]);
});
