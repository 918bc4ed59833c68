import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import {
  getLimiterToken,
  type Limiter,
  type PolicyOptions,
  RateLimitModule,
  type RateLimitModuleOptions,
} from '../../../lib/index.js';
import { RatesApp, until } from '../overrides/overrides-app.js';
import { PolicyFolder } from './policy-folder.js';

const folder = new PolicyFolder();
let apps: RatesApp[];
let logged: Record<'log' | 'warn' | 'error', string[]>;

beforeEach(() => {
  apps = [];
  logged = { log: [], warn: [], error: [] };
  for (const level of ['log', 'warn', 'error'] as const) {
    jest.spyOn(Logger.prototype, level).mockImplementation((text: unknown) => void logged[level].push(String(text)));
  }
});

afterEach(async () => {
  jest.useRealTimers();
  jest.restoreAllMocks();
  await Promise.all(apps.map((app) => app.close()));
});

/** An app with `login` (gcra, 10 an hour) and `hourly` (100 an hour), and a policy. */
async function start(policy: PolicyOptions, options: RateLimitModuleOptions = {}, more = {}): Promise<RatesApp> {
  const app = await RatesApp.start({ policy, ...options }, more);
  apps.push(app);
  return app;
}

/** The same with a policy in a file, which is looked at all the time. */
async function watching(text: string, options: RateLimitModuleOptions = {}): Promise<RatesApp> {
  return start({ source: await folder.write('limits.yaml', text), watch: true, every: 10 }, options);
}

const LOGIN_5 = 'limits: { login: { rate: 5 } }';

describe('a policy file', () => {
  it('changes limits of code, and adds others', async () => {
    const source = await folder.write(
      'limits.yaml',
      'limits:\n  login: { rate: 5 }\n  hourly: { rate: 50, blockFor: 1m }\n  new: { algo: gcra, rate: 3, interval: 1s, key: global }\n',
    );
    const app = await start({ source });
    expect(await Promise.all(['login', 'new'].map((name) => app.quota(name)))).toEqual([5, 3]);
    expect(app.nest.get<Limiter>(getLimiterToken('new')).name).toBe('new');
    expect(await app.service.getRate('login')).toEqual({
      name: 'login',
      options: { algo: 'gcra', rate: 5, interval: '1h' },
      source: 'policy',
      override: undefined,
      policy: `${source}:2:3 limits.login`,
    });
    expect(await app.service.getRate('hourly')).toMatchObject({ options: { rate: 50 }, source: 'policy' });
    expect((await app.service.listRates()).map(({ name, source }) => [name, source])).toEqual([
      ['hourly', 'policy'],
      ['login', 'policy'],
      ['new', 'policy'],
    ]);
  });

  it('is JSON, too', async () => {
    const source = await folder.write(
      'limits.json',
      '\uFEFF{\n\t"$schema": "x",\n\t"limits": { "login": { "rate": 5 } } }',
    );
    expect(await (await start({ source })).quota()).toBe(5);
  });

  it('gives a limit of code another algorithm', async () => {
    const source = await folder.write('limits.yaml', 'limits: { login: { algo: sliding-log, rate: 4, interval: 1m } }');
    const app = await start({ source }, { define: { login: { algo: 'gcra', rate: 1, interval: '1h', burst: 9 } } });
    expect(await app.service.getRate('login')).toMatchObject({
      options: { algo: 'sliding-log', rate: 4, interval: '1m' },
    });
    expect(await app.quota()).toBe(4);
  });

  it('changes limits of features', async () => {
    const source = await folder.write(
      'limits.yaml',
      'limits: { feature: { burst: 8 } }\noverrides: { feature: { "t:*": { rate: 2 } } }',
    );
    const feature = RateLimitModule.forFeature({ feature: { algo: 'gcra', rate: 1, interval: '1h' } });
    const app = await start({ source }, {}, { imports: [feature] });
    expect([await app.quota('feature'), await app.quota('feature', 't:1')]).toEqual([8, 8]);
    expect((await app.service.getRate('feature', { key: 't:1' })).options).toMatchObject({ rate: 2, burst: 8 });
  });

  it('sets modes, off included', async () => {
    const source = await folder.write('limits.yaml', 'limits: { login: { mode: off }, hourly: { mode: shadow } }');
    const app = await start({ source });
    expect(await app.service.getMode('login')).toMatchObject({ mode: 'off', source: 'policy' });
    expect((await app.service.for('login').consume('a', 11)).allowed).toBe(true);
    expect(await app.service.getMode('hourly')).toMatchObject({ mode: 'shadow', source: 'policy' });
    await app.service.setMode('login', 'enforce');
    expect((await app.service.for('login').consume('a', 11)).allowed).toBe(false);
  });

  it('overrides keys, of which the most specific one holds', async () => {
    const source = await folder.write(
      'limits.yaml',
      "overrides:\n  login:\n    'tenant:acme': { rate: 500 }\n    'tenant:*': { rate: 50, mode: shadow }\n",
    );
    const app = await start({ source });
    const quotas = () => Promise.all(['tenant:acme', 'tenant:other', 'user:1'].map((key) => app.quota('login', key)));
    expect(await quotas()).toEqual([500, 50, 10]);
    expect(await app.service.getRate('login', { key: 'tenant:acme' })).toMatchObject({
      source: 'policy',
      policy: `${source}:3:5 overrides.login['tenant:acme']`,
    });
    expect(await app.service.getMode('login', { key: 'tenant:acme' })).toMatchObject({
      mode: 'shadow',
      policy: `${source}:4:5 overrides.login['tenant:*']`,
    });
    expect(await app.service.listRates('login')).toEqual({ overrides: [], next: undefined });
    // A change of all does not take away what the policy gives one of them.
    await app.service.setRate('login', { rate: 7 });
    expect(await quotas()).toEqual([500, 50, 7]);
    await app.service.setRate('login', { rate: 8 }, { key: 'tenant:*' });
    expect(await quotas()).toEqual([500, 8, 7]);
    await app.service.setRate('login', { rate: 9 }, { key: 'tenant:acme' });
    expect(await quotas()).toEqual([9, 8, 7]);
    for (const key of ['tenant:*', 'tenant:acme']) await app.service.clearRate('login', { key });
    await app.service.clearRate('login');
    expect(await quotas()).toEqual([500, 50, 10]);
  });

  it.each([
    [
      'a wrong value',
      'limits:\n  login:\n    rate: -1',
      ':3:11 limits.login.rate: expected a whole number >= 1, received -1',
    ],
    [
      'an unknown limit',
      'limits:\n  lgoin: { rate: 5 }',
      ":2:3 limits.lgoin: unknown limit 'lgoin', expected a limit of 'define', 'forFeature' or 'limits', or, in the policy's 'limits', an 'algo': 'hourly', 'login'",
    ],
    [
      'an override of an unknown limit',
      'overrides:\n  lgoin: { a: { rate: 5 } }',
      ":2:12 overrides.lgoin.a: unknown limit 'lgoin'",
    ],
    [
      'an option of another algorithm',
      'limits:\n  login: { queue: 5 }',
      ":2:3 limits.login: option 'queue' is not an option of 'gcra': it belongs to leaky-bucket",
    ],
    [
      'an override of another algorithm',
      'overrides:\n  login:\n    a: { queue: 5 }',
      ":3:5 overrides.login.a: option 'queue' is not an option of 'gcra'",
    ],
    [
      'options that do not go together',
      'limits:\n  login: { rate: 9007199254740991, interval: 365d }',
      ":2:3 limits.login: a 'rate' of ",
    ],
    [
      'what only limits of the module can have',
      'limits:\n  login: { perRoute: true }',
      ":2:3 limits.login.perRoute: expected false, but in the module's 'limits', on a class and on a route, received true",
    ],
  ])('with %s does not let the app start', async (_, text, message) => {
    const source = await folder.write('limits.yaml', text);
    await expect(start({ source })).rejects.toThrow(`${source}${message}`);
  });

  it('with several mistakes tells all of them', async () => {
    const source = await folder.write('limits.yaml', 'limits: { login: { rate: 0 } }\noverrides: { a: 1 }');
    await expect(start({ source })).rejects.toThrow(
      `the policy has 2 problems:\n  ${source}:1:26 limits.login.rate: expected a whole number >= 1, received 0\n  ${source}:2:17 overrides.a: expected `,
    );
  });

  it('that is not there does not let the app start', async () => {
    await expect(start({ source: folder.path('limits.yaml') })).rejects.toThrow(
      /limits\.yaml: it cannot be read: ENOENT/,
    );
  });
});

describe('a watched policy', () => {
  it('holds anew when its file changes, and counters stay', async () => {
    const app = await watching(LOGIN_5);
    await app.service.for('login').consume('user:1', 4);
    await folder.replace('limits.yaml', 'limits: { login: { rate: 20 } }');
    await until(() => app.quota(), 20);
    expect(await app.remaining()).toBe(16);
    expect(logged.log).toContainEqual(
      expect.stringMatching(/^the policy .*limits\.yaml has changed, and is now in effect$/),
    );
  });

  it('goes back to the limits of code where it says nothing any more', async () => {
    const app = await watching(`${LOGIN_5}\noverrides: { login: { a: { rate: 3 } } }`);
    expect([await app.quota(), await app.quota('login', 'a')]).toEqual([5, 3]);
    await folder.replace('limits.yaml', 'limits: {}');
    await until(() => app.quota(), 10);
    expect(await app.quota('login', 'a')).toBe(10);
    expect(await app.service.getRate('login', { key: 'a' })).toMatchObject({ source: 'configured' });
  });

  it('adds limits', async () => {
    const app = await watching(LOGIN_5);
    await folder.replace(
      'limits.yaml',
      `limits: { login: { rate: 6 }, new: { algo: gcra, rate: 3, interval: 1s } }\noverrides: { new: { a: { rate: 2 } } }`,
    );
    await until(() => app.quota(), 6);
    expect([await app.quota('new'), await app.quota('new', 'a')]).toEqual([3, 2]);
    await app.service.setRate('new', { rate: 9 });
    expect([await app.quota('new'), await app.quota('new', 'a')]).toEqual([9, 2]);
  });

  it('keeps its last good version while a later one is wrong, and tells so once', async () => {
    const app = await watching(LOGIN_5);
    const bad = 'limits:\n  login: { rate: none }\n  hourly: { rate: 7 }\n';
    await folder.replace('limits.yaml', bad);
    await until(async () => logged.error.length, 1);
    await folder.replace('limits.yaml', `${bad}# more`);
    await folder.replace('limits.yaml', 'limits: { hourly: { queue: 1 } }');
    await until(async () => logged.error.length, 2);
    expect(logged.error[0]).toBe(
      `the changed policy is rejected, and the last valid one stays in effect: ${folder.path('limits.yaml')}:2:18 limits.login.rate: expected a whole number >= 1, received 'none'`,
    );
    expect([await app.quota(), (await app.service.getRate('hourly')).options]).toEqual([
      5,
      { algo: 'sliding-window', rate: 100, interval: '1h' },
    ]);
    await folder.remove('limits.yaml');
    await until(async () => logged.error.length, 3);
    expect(logged.error[2]).toMatch(/limits\.yaml: it cannot be read: ENOENT/);
    await folder.replace('limits.yaml', 'limits: { login: { rate: 6 } }');
    await until(() => app.quota(), 6);
  });

  it.each([
    [
      'another key',
      'limits:\n  login: { rate: 6, key: user }',
      ":2:21 limits.login.key: option 'key' would change from undefined to 'user', which needs a restart",
    ],
    [
      'another algorithm',
      'limits:\n  login: { algo: sliding-log, rate: 6, interval: 1s }',
      ":2:12 limits.login.algo: option 'algo' would change from 'gcra' to 'sliding-log', which needs a restart",
    ],
    ['a limit less', 'limits:\n  login: { rate: 6 }', ": limit 'own' is gone"],
  ])('needs a restart for %s', async (_, text, message) => {
    const own = '\n  own: { algo: gcra, rate: 1, interval: 1s }';
    const app = await watching(`limits:\n  login: { rate: 5 }${own}`);
    await folder.replace('limits.yaml', message.includes('gone') ? text : `${text}${own}`);
    await until(async () => logged.error.length, 1);
    expect(logged.error[0]).toContain(`${folder.path('limits.yaml')}${message}`);
    expect(logged.error[0]).toContain('needs a restart');
    expect(await app.quota()).toBe(5);
  });

  it('changes what is of no algorithm, too, where a limit can follow', async () => {
    const app = await watching(LOGIN_5);
    await folder.replace('limits.yaml', 'limits: { login: { rate: 1, blockFor: 2h } }');
    await until(() => app.quota(), 1);
    await app.service.for('login').consume('a');
    await app.service.for('login').consume('a');
    expect((await app.service.for('login').peek('a')).retryAfterMs).toBeGreaterThan(3_700_000);
  });

  it('leaves what operators changed', async () => {
    const app = await watching(LOGIN_5);
    await app.service.setRate('login', { rate: 77 });
    await app.service.setMode('login', 'shadow');
    await folder.replace(
      'limits.yaml',
      'limits: { login: { rate: 6, mode: off, burst: 30 } }\noverrides: { login: { a: { rate: 4, burst: 4 } } }',
    );
    await until(() => app.quota('login', 'a'), 4);
    // A patch holds with the options of the policy that it does not set.
    expect(await app.service.getRate('login')).toMatchObject({ source: 'limit', options: { rate: 77, burst: 30 } });
    expect(await app.service.getMode('login')).toMatchObject({ source: 'limit', mode: 'shadow' });
    await app.service.clearMode('login');
    expect(await app.service.getMode('login')).toMatchObject({ source: 'policy', mode: 'off' });
  });

  it('ends with the app', async () => {
    jest.useFakeTimers();
    const before = jest.getTimerCount();
    const app = await watching(LOGIN_5);
    expect(jest.getTimerCount()).toBe(before + 1);
    await app.close();
    expect(jest.getTimerCount()).toBe(before);
    await folder.replace('limits.yaml', 'limits: { login: { rate: 20 } }');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(await app.quota()).toBe(5);
  });
});

describe('a policy of a function', () => {
  it('holds, and is asked again', async () => {
    let rate = 5;
    const app = await start({ source: () => ({ limits: { login: { rate } } }), watch: true, every: 10 });
    expect(await app.quota()).toBe(5);
    rate = 6;
    await until(() => app.quota(), 6);
    expect(await app.service.getRate('login')).toMatchObject({ policy: 'policy.source() limits.login' });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('no database')), 'policy.source(): the function failed: no database'],
    [
      'gives no policy',
      () => ({ limits: { login: { rate: '5' } } }),
      "policy.source() limits.login.rate: expected a whole number >= 1, received '5'",
    ],
    [
      'gives nothing',
      () => undefined as never,
      'policy.source(): expected an object of limits, overrides and lists, received undefined',
    ],
    [
      'hangs',
      () => new Promise<object>(() => undefined),
      'policy.source(): the function failed: it returned nothing within 20 ms',
    ],
    [
      'gives what throws when it is read',
      () => ({
        get limits() {
          throw new Error('a getter');
        },
      }),
      'policy.source(): the function failed: a getter',
    ],
  ])('that %s keeps its last good version, and tells so once', async (_, bad, message) => {
    let asked = 0;
    const source = () => (asked++ === 0 ? { limits: { login: { rate: 5 } } } : bad());
    const app = await start({ source, watch: true, every: 10, timeout: 20 });
    await until(async () => asked > 3, true);
    expect(logged.error).toEqual([
      expect.stringContaining(`the changed policy is rejected, and the last valid one stays in effect: ${message}`),
    ]);
    expect(await app.quota()).toBe(5);
    await expect(start({ source: bad, timeout: 20 })).rejects.toThrow(message);
  });

  it('is told nothing once it has ended, even by throwing before it gave a promise', async () => {
    const signals: AbortSignal[] = [];
    const source = (signal: AbortSignal) => {
      if (signals.push(signal) > 1) throw new Error('no database');
      return {};
    };
    const app = await start({ source, watch: true, every: 10 });
    await until(async () => signals.length > 2, true);
    await app.close();
    // Nobody would take what the end of a call that is over rejects.
    expect(signals.filter(({ aborted }) => aborted)).toEqual([]);
  });

  it('is told when its answer is not waited for any more', async () => {
    const signals: AbortSignal[] = [];
    const source = (signal: AbortSignal) => (signals.push(signal) === 1 ? {} : new Promise<object>(() => undefined));
    const app = await start({ source, watch: true, every: 10, timeout: '1h' });
    await until(async () => signals.length, 2);
    expect(signals[1]!.aborted).toBe(false);
    await app.close();
    expect(signals[1]!.aborted).toBe(true);
    expect(logged.error).toEqual([]);
  });
});

describe('the option policy', () => {
  it.each([
    [{}, 'RateLimitModule.policy.source: missing, expected the path of a .yaml, .yml or .json file, or a function'],
    [
      { source: 'limits.toml' },
      /RateLimitModule\.policy\.source: expected the path of a \.yaml.+, received 'limits\.toml'/,
    ],
    [{ source: 5 }, /RateLimitModule\.policy\.source: expected the path.+, received 5/],
    [{ source: 'a.yaml', wtach: true }, "RateLimitModule.policy: unknown option 'wtach'. Did you mean 'watch'?"],
    [{ source: 'a.yaml', watch: 1 }, 'RateLimitModule.policy.watch: expected true or false, received 1'],
    [
      { source: 'a.yaml', every: '1s' },
      "RateLimitModule.policy.every: expected no value, received '1s': it needs 'watch: true'",
    ],
    [
      { source: 'a.yaml', watch: true, every: 1 },
      'RateLimitModule.policy.every: expected at least 10 ms and at most 1 day, received 1',
    ],
    [{ source: 'a.yaml', timeout: '2h' }, "RateLimitModule.policy.timeout: expected at most 1 hour, received '2h'"],
    [
      'limits.yaml',
      "RateLimitModule.policy: expected an object such as { source: './limits.yaml' }, received 'limits.yaml'",
    ],
  ])('%j is refused', async (policy, message) => {
    await expect(start(policy as never)).rejects.toThrow(message);
  });
});
