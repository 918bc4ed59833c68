import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  formatExplanation,
  type LimitDefinition,
  MemoryStore,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { RatesApp } from '../../app/overrides/overrides-app.js';
import { PolicyFolder } from '../../app/policy/policy-folder.js';
import { freshPrefix, ManualClock } from '../../support/limits/stores.js';

const KEY = 'tenant:acme';
const folder = new PolicyFolder();
let app: RatesApp | undefined;

beforeEach(() => {
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await app?.close();
});

async function start(options: RateLimitModuleOptions) {
  const redis = process.env['TEST_REDIS_URL'];
  app = await RatesApp.start({ redis, prefix: freshPrefix(), ...options });
  return app.service;
}

const define = {
  api: {
    algo: 'fixed-window',
    rate: 10,
    interval: '1h',
    candidate: { rate: 2 },
    blockFor: ['1m', '10m', '1h'],
    forgetAfter: '1d',
  },
} as const satisfies Record<string, LimitDefinition>;

it('a candidate is explained by its own counter, and nothing is charged', async () => {
  const service = await start({ define });
  const api = service.for('api');
  const fresh = await service.explain({ limit: 'api', key: KEY });
  expect(fresh.limits[0]!.candidate).toEqual({
    options: { algo: 'fixed-window', rate: 2, interval: '1h' },
    quota: 2,
    state: { remaining: 2, resetAfterMs: 0, blockedForMs: 0, offences: 0, source: 'redis' },
    decision: { allowed: true, retryAfterMs: 0, delayMs: 0 },
  });
  await api.consume(KEY, 2);
  const told: unknown[] = [];
  service.decisions$.subscribe((event) => told.push([event.candidate ?? false, event.outcome]));
  const explained = await service.explain({ limit: 'api', key: KEY });
  expect(JSON.parse(JSON.stringify(explained))).toStrictEqual(explained);
  expect(explained).toMatchObject({
    outcome: { verdict: 'allowed' },
    limits: [
      {
        state: { remaining: 8 },
        decision: { allowed: true },
        candidate: { state: { remaining: 0 }, decision: { allowed: false, blocks: true, retryAfterMs: 60_000 } },
      },
    ],
  });
  expect(formatExplanation(explained)).toContain(
    '  candidate fixed-window:2/1h, 0/2 left, would refuse and blocks, retry after 1 min\n',
  );
  expect(told).toEqual([]);
  await api.consume(KEY);
  expect(told).toEqual([
    [false, 'allowed'],
    [true, 'shadow-refused'],
  ]);
  await service.deny({ identity: KEY });
  const listed = await service.explain({ limit: 'api', key: KEY });
  expect(listed.limits[0]!.candidate).toEqual({ options: { algo: 'fixed-window', rate: 2, interval: '1h' }, quota: 2 });
  expect(formatExplanation(listed)).toContain('  candidate fixed-window:2/1h\n');
});

it('a block that a refusal would begin is that of the next offence', async () => {
  const clock = new ManualClock();
  app = await RatesApp.start({ define, store: new MemoryStore({ clock: clock.now }) });
  const { service } = app;
  const api = service.for('api');
  const waits = [60_000, 600_000, 3_600_000, 3_600_000];
  for (const [offences, wait] of waits.entries()) {
    await api.consume(KEY, 10);
    expect(await service.explain({ limit: 'api', key: KEY })).toMatchObject({
      outcome: { verdict: 'refused', retryAfterMs: wait },
      limits: [
        {
          blockForMs: [60_000, 600_000, 3_600_000],
          state: { offences, blockedForMs: 0 },
          decision: { allowed: false, blocks: true, retryAfterMs: wait },
        },
      ],
    });
    expect(await api.consume(KEY)).toMatchObject({ retryAfterMs: wait, offences: offences + 1 });
    const blocked = await service.explain({ limit: 'api', key: KEY });
    expect(blocked.limits[0]!.decision).not.toHaveProperty('blocks');
    expect(formatExplanation(blocked)).toContain(`  blocks for 1 min, 10 min, 1 h; offences: ${offences + 1}\n`);
    clock.advanceMs(wait);
  }
});

it('what a policy says is told with its place', async () => {
  const source = await folder.write(
    'limits.yaml',
    [
      'limits:',
      '  login: { rate: 5 }',
      '  hourly: { rate: 50 }',
      '  own: { algo: gcra, rate: 3, interval: 1s }',
      'overrides:',
      '  login:',
      "    'tenant:*': { rate: 7, mode: shadow }",
      '',
    ].join('\n'),
  );
  const service = await start({ policy: { source } });
  const login = await service.explain({ limit: 'login', key: 'user:1' });
  const place = `${source}:2:3 limits.login`;
  expect(login.limits[0]).toMatchObject({
    origin: { level: 'defined', location: 'define.login' },
    rate: { options: { rate: 5 }, source: 'policy', policy: place },
    mode: { mode: 'enforce', source: 'configured' },
  });
  expect(login.limits[0]!.rate).not.toHaveProperty('configured');
  expect(formatExplanation(login)).toContain(`  rate by the policy, ${place}\n`);
  const own = await service.explain({ limit: 'own', key: 'user:1' });
  expect(own.limits[0]!.origin).toEqual({ level: 'defined', location: `${source}:4:3 limits.own` });
  const hourly = await service.explain({ limit: 'hourly', key: 'user:1' });
  expect(hourly.limits[0]).toMatchObject({ origin: { level: 'module', location: 'limits[0]' }, quota: 50 });
  const tenant = await service.explain({ limit: 'login', key: KEY });
  expect(JSON.parse(JSON.stringify(tenant))).toStrictEqual(tenant);
  const of = `${source}:7:5 overrides.login['tenant:*']`;
  expect(tenant.limits[0]).toMatchObject({
    rate: { options: { rate: 7 }, source: 'policy', policy: of, configured: { rate: 5 } },
    mode: { mode: 'shadow', source: 'policy', policy: of },
  });
  const text = formatExplanation(tenant);
  expect(text).toContain(`  rate by the policy, ${of}, configured gcra:5/1h\n`);
  expect(text).toContain(`  mode shadow by the policy, ${of}\n`);
});
