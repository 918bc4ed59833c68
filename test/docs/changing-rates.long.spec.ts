import { afterEach, expect, it } from '@jest/globals';
import {
  Body,
  Controller,
  Delete,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  Param,
  Put,
  UseGuards,
} from '@nestjs/common';
import { LimiterService, RateLimit, RateLimitModule, type RatePatch, SkipRateLimit } from '../../lib/index.js';
import { untriedCode } from './rows.js';
import { TriedApp } from './tried-app.js';

const tenantOf = (context: ExecutionContext) =>
  context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers['x-tenant'];

@Injectable()
class AdminGuard {
  canActivate() {
    return true;
  }
}

@Controller('admin/rates')
@UseGuards(AdminGuard) // yours: whoever may call this can lift your limits
@SkipRateLimit() // otherwise a rejected operator couldn't change the rate
export class RatesController {
  constructor(private readonly limiters: LimiterService) {}

  @Get()
  list() {
    return this.limiters.listRates();
  }

  @Put(':name')
  set(@Param('name') name: string, @Body() patch: RatePatch) {
    return this.limiters.setRate(name, patch, { expiresIn: '1h' });
  }

  @Delete(':name')
  clear(@Param('name') name: string) {
    return this.limiters.clearRate(name);
  }
}

@Controller()
class ApiController {
  @Get()
  @RateLimit('api')
  get() {
    return 'ok';
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ define: { api: { algo: 'gcra', rate: 100, interval: '1m', key: tenantOf } } })],
  controllers: [RatesController, ApiController],
})
class AppModule {}

let app: TriedApp;
afterEach(() => app.close());

it('the controller of the guide changes the rate of a limit', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const url = await app.nest.getUrl();
  const headers = { 'content-type': 'application/json' };
  const put = await fetch(`${url}/admin/rates/api`, { method: 'PUT', body: JSON.stringify({ rate: 7 }), headers });
  expect(put.status).toBe(200);
  expect((await app.get()).headers.get('ratelimit-policy')).toContain('q=7;');
  expect(await (await app.get('/admin/rates')).json()).toMatchObject([{ name: 'api', options: { rate: 7 } }]);
  expect(await (await fetch(`${url}/admin/rates/api`, { method: 'DELETE' })).text()).toBe('true');
  expect((await app.get()).headers.get('ratelimit-policy')).toContain('q=100;');
});

it('the calls of the guide change the rate of one customer', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const { limiters } = app;
  const quota = async (key: string) => (await limiters.for('api').peek(key)).quota;
  await limiters.setRate(
    'api',
    { rate: 5_000 },
    { key: 'tenant:acme', expiresIn: '2d', by: 'eva', reason: 'migration' },
  );
  await limiters.setRate('api', { rate: 500 }, { key: 'tenant:*' }); // all keys with this prefix
  expect([await quota('tenant:acme'), await quota('tenant:other'), await quota('user:1')]).toEqual([5000, 500, 100]);
  const told = await limiters.getRate('api', { key: 'tenant:acme' }); // { source: 'key', options: { rate: 5_000, … }, override: … }
  expect(told).toMatchObject({ source: 'key', options: { rate: 5_000 }, override: { by: 'eva', reason: 'migration' } });
  await limiters.clearRate('api', { key: 'tenant:acme' }); // 'tenant:*' applies to it again
  expect(await quota('tenant:acme')).toBe(500);
});

it('the calls of the guide change modes', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const { limiters } = app;
  const refused = async (key: string) => !(await limiters.for('api').consume(key, 101)).allowed;
  expect([await refused('tenant:acme'), await refused('user:1')]).toEqual([true, true]);
  await limiters.setMode('api', 'shadow'); // counts and reports, but rejects nothing
  await limiters.setMode('api', 'off', { key: 'tenant:acme', expiresIn: '1h', by: 'eva', reason: 'incident 812' });
  expect([await refused('tenant:acme'), await refused('user:1')]).toEqual([false, false]);
  const told = await limiters.getMode('api', { key: 'tenant:acme' }); // { mode: 'off', source: 'key', override: … }
  await limiters.clearMode('api');
  expect(told).toMatchObject({ mode: 'off', source: 'key', override: { by: 'eva' } });
  expect([await refused('tenant:acme'), await refused('user:1')]).toEqual([false, true]);
});

it('the calls of the guide tell of a change, and undo it', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const { limiters } = app;
  await limiters.setRate('api', { rate: 50 });
  await limiters.setRate('api', { rate: 5000 }, { key: 'tenant:acme', by: 'eva', reason: 'migration' });
  const [last] = await limiters.changes({ limit: 'api', last: 1 }); // newest first
  // { version: 7, at: 1795302492311, by: 'eva', reason: 'migration',
  //   overrides: [{ kind: 'rate', limit: 'api', key: 'tenant:acme', before: undefined, after: { patch: { rate: 5000 }, … } }] }
  if (last === undefined) throw new Error('no change is in the history');
  expect(last).toMatchObject({
    version: 2,
    by: 'eva',
    reason: 'migration',
    overrides: [
      { kind: 'rate', limit: 'api', key: 'tenant:acme', before: undefined, after: { patch: { rate: 5000 } } },
    ],
  });
  await limiters.rollback(last.version - 1, { by: 'ops', reason: 'it was the wrong tenant' });
  expect(await limiters.getRate('api', { key: 'tenant:acme' })).toMatchObject({
    source: 'limit',
    options: { rate: 50 },
  });
});

it('is the code of the guide, word for word', async () => {
  app = await TriedApp.start({ imports: [AppModule] });
  const untried = untriedCode('docs/guides/changing-rates.md', 'test/docs/changing-rates.long.spec.ts', 'started');
  expect(untried.filter((piece) => !piece.startsWith('import type'))).toEqual([]);
});
