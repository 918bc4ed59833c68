import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ConsoleApp, type Overview, type Session, THINGS, type TopKeys } from '../console/console-app.js';
import { browserOfSpec } from '../support/browser/browser.js';
import { ensureBuilt } from '../support/processes/built.js';
import { startRedis } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
import { runHere } from './run-program.js';
import { ServedConsole } from './served-console.js';

const REDIS = process.env['TEST_REDIS_URL'] as string;

const browser = browserOfSpec();

describe('nestjs-sluice console', () => {
  const prefix = freshPrefix();
  let app: ConsoleApp;
  let served: ServedConsole;

  beforeAll(async () => {
    await ensureBuilt();
    app = await ConsoleApp.start({
      limits: {
        redis: REDIS,
        prefix,
        limits: [{ name: 'everywhere', algo: 'fixed-window', rate: 100, interval: '1h', key: 'user' }],
        define: {
          things: THINGS,
          api: { algo: 'fixed-window', rate: 10, interval: '1h' },
          cores: { algo: 'adaptive', min: 1, max: 10, scope: 'instance' },
        },
      },
    });
    const { service } = app;
    for (let call = 0; call < 25; call++) await service.for('api').consume('user:1');
    await app.console.recorder.flush();
    served = await ServedConsole.start('--prefix', prefix);
  }, 120_000);

  afterAll(async () => {
    await served?.stop();
    await app?.close();
  });

  it('shows the limits that instances published, and counts of all of them', async () => {
    const session = await served.read<Session>('session');
    const published = await app.read<Session>('session');
    expect(session.limits.map(({ name }) => name)).toEqual(published.limits.map(({ name }) => name));
    expect(session.limits.find(({ name }) => name === 'api')).toEqual(
      published.limits.find(({ name }) => name === 'api'),
    );
    expect(session.limits.find(({ name }) => name === 'cores')).toMatchObject({ addressable: false });
    expect(session.observedSince).toEqual(expect.any(Number));
    expect(session.writable).toBe(false);
    const { totals, instances, coverage } = await served.read<Overview>('overview?range=1h');
    expect(totals['api']).toMatchObject({ allowed: 10, refused: 15 });
    expect(instances.map(({ id }) => id)).toEqual([app.console.recorder.self.id]);
    expect(coverage.instances).toEqual([app.console.recorder.self.id]);
    const seen = await app.overview();
    expect(seen.instances).toHaveLength(1);
    const top = await served.read<TopKeys>('top?limit=api');
    expect(top.refused).toMatchObject([{ count: 15 }]);
  });

  it('looks keys up, and changes nothing', async () => {
    const answer = await served.post('lookup', { identity: 'user:1' });
    const { limits } = (await answer.json()) as { limits: { limit: string; used: number }[] };
    expect(limits.find(({ limit }) => limit === 'api')).toMatchObject({ used: 10 });
    const block = { limit: 'api', identity: 'user:1', duration: '1m', reason: 'a test' };
    const refused = await served.post('keys/block', block);
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { detail: expect.stringContaining('read-only') },
    ]);
  });

  it('lets nobody in without the token', async () => {
    for (const cookie of ['', 'sluice-console=x', `sluice-console-${new URL(served.link).port}=wrong`]) {
      expect((await served.get('session', cookie)).status).toBe(403);
    }
    const wrong = await fetch(served.link.replace(/token=.*/, 'token=wrong'), { redirect: 'manual' });
    expect(wrong.headers.get('set-cookie')).toBeNull();
    expect(new URL(served.link).hostname).toBe('127.0.0.1');
  });

  it('opens in a browser by its link', async () => {
    const { page } = await browser.open(served.link);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.getByRole('link', { name: 'api', exact: true }).first().waitFor();
    expect(page.url()).not.toContain('token');
  });

  it('changes what the app reads with --write, after the app has ended', async () => {
    const other = await ConsoleApp.start({
      limits: { redis: REDIS, prefix: `${prefix}-ended` },
    });
    await other.console.recorder.flush();
    await other.close();
    const writing = await ServedConsole.start('--prefix', `${prefix}-ended`, '--write', '--by', 'eva');
    expect(writing.printed).not.toContain('read-only');
    const set = { limit: 'things', patch: { rate: 12 }, reason: 'Launch' };
    expect((await writing.post('rates/set', set)).status).toBe(200);
    expect(await writing.stop()).toBe(0);
    const again = await ConsoleApp.start({ limits: { redis: REDIS, prefix: `${prefix}-ended` } });
    expect(await again.service.getRate('things')).toMatchObject({
      options: { rate: 12 },
      override: { by: 'eva', reason: 'Launch' },
    });
    await again.close();
  });

  it('says that nothing is known while Redis does not answer', async () => {
    const redis = await startRedis();
    const other = await ConsoleApp.start({ limits: { redis: redis.url, prefix } });
    await other.console.recorder.flush();
    await other.close();
    const alone = await ServedConsole.start('--prefix', prefix, '--timeout', '300ms', '--redis', redis.url);
    expect((await alone.read<Overview>('overview?range=1h')).instances).toEqual([]);
    await redis.stop();
    const response = await alone.get('overview?range=1h');
    expect([response.status, await response.json()]).toMatchObject([
      503,
      { detail: expect.stringContaining('Redis does not answer, so the state of the app is unknown') },
    ]);
    expect(await alone.stop()).toBe(0);
  });

  it.each([
    [['--write', '--redis', REDIS], 2, '--by: missing'],
    [['--port', '99999', '--redis', REDIS], 2, "--port: expected a port from 0 to 65535, received '99999'"],
    [['now', '--redis', REDIS], 2, "unexpected argument 'now': expected only options"],
    [['--redis', REDIS, '--prefix', 'nobody'], 1, "Redis has no limits of an app with the prefix 'nobody'"],
    [['--redis', 'redis://127.0.0.1:1', '--timeout', '300ms'], 1, '127.0.0.1:1'],
  ])('refuses %p', async (args, code, message) => {
    const run = await runHere(['console', ...args]);
    expect({ code: run.code, stdout: run.stdout }).toEqual({ code, stdout: '' });
    expect(run.stderr).toContain(message);
  });
});
