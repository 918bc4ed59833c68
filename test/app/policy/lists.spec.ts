import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Logger } from '@nestjs/common';
import fc from 'fast-check';
import { type PolicyOptions, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import { TriedApp } from '../../docs/tried-app.js';
import { RatesApp, until } from '../overrides/overrides-app.js';
import { propertyRuns } from '../../support/limits/property-runs.js';
import { freshPrefix } from '../../support/limits/stores.js';
import { PolicyFolder } from './policy-folder.js';
import { tell } from './tell.js';

const redis = process.env['TEST_REDIS_URL'] as string;
const folder = new PolicyFolder();
let closes: (() => Promise<void>)[];
let errors: string[];

beforeEach(() => {
  closes = [];
  errors = [];
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
  jest.spyOn(Logger.prototype, 'error').mockImplementation((text: unknown) => void errors.push(String(text)));
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of closes) await close();
});

async function start(policy: object | PolicyOptions, options: RateLimitModuleOptions = {}): Promise<RatesApp> {
  const from = 'source' in policy ? policy : { source: () => policy };
  const app = await RatesApp.start({ policy: from, ...options });
  closes.push(() => app.close());
  return app;
}

const sourceOf = async (app: RatesApp, key = 'a') => (await app.service.for('login').consume(key)).source;
const listOf = (app: RatesApp) => async () => (await app.service.listEntries({ key: 'a' })).entries[0]?.list;
const DENY_A = { lists: { deny: [{ identity: 'a' }] } };

@Controller()
class PlainController {
  @Get()
  get() {}
}

describe('the lists of a policy', () => {
  it('hold from the start, and are told with their places', async () => {
    const source = await folder.write(
      'limits.yaml',
      `lists:
  allow:
    - { identity: 'tenant:acme', limit: login, reason: pays }
  deny:
    - ip: 203.0.113.0/24
    - pattern: 'tenant:*'
`,
    );
    const app = await start({ source });
    const told = { source: 'policy', version: undefined, expiresAt: undefined };
    const at = (place: string) => ({ ...told, policy: `${source}:${place}` });
    expect((await app.service.listEntries()).entries).toEqual([
      { entry: { ip: '203.0.113.0/24' }, list: 'deny', ...at('5:7 lists.deny[0]') },
      { entry: { pattern: 'tenant:*' }, list: 'deny', ...at('6:7 lists.deny[1]') },
      {
        entry: { identity: 'tenant:acme' },
        list: 'allow',
        limit: 'login',
        reason: 'pays',
        ...at('3:7 lists.allow[0]'),
      },
    ]);
    expect([await sourceOf(app, 'tenant:b'), await sourceOf(app, 'user:1')]).toEqual(['list', 'memory']);
    expect((await app.service.listEntries({ ip: '203.0.113.9' })).entries[0]).toMatchObject({
      source: 'policy',
      list: 'deny',
    });
  });

  it('refuse addresses wherever the guard sees them, also if the policy began without lists', async () => {
    const module = RateLimitModule.forRoot({ policy: { source: () => ({}) } });
    const app = await TriedApp.start({ imports: [module], controllers: [PlainController] });
    closes.push(() => app.close());
    expect((await app.get('/')).status).toBe(200);
    tell(app.nest, { lists: { deny: [{ ip: '127.0.0.0/8' }, { ip: '::1' }] } });
    expect((await app.get('/')).status).toBe(403);
    tell(app.nest, { lists: null });
    expect((await app.get('/')).status).toBe(200);
  });

  it('change with their file, all at once with the rest or not at all', async () => {
    const source = await folder.write('limits.yaml', 'limits: { login: { rate: 5 } }');
    const app = await start({ source, watch: true, every: 10 });
    expect(await sourceOf(app)).toBe('memory');
    const wrong = 'limits: { login: { rate: 6 } }\nlists:\n  deny: [{ identity: a }, { ip: 10.0.0.1/8 }]\n';
    await folder.replace('limits.yaml', wrong);
    await until(async () => errors.length, 1);
    expect(errors[0]).toContain(
      `${source}:3:33 lists.deny[1].ip: expected the network '10.0.0.0/8' or the address '10.0.0.1', received '10.0.0.1/8'`,
    );
    expect([await sourceOf(app), await app.quota('login', 'b')]).toEqual(['memory', 5]);
    await folder.replace('limits.yaml', wrong.replace('0.1/8', '0.0/8'));
    await until(() => app.quota('login', 'b'), 6);
    expect(await sourceOf(app)).toBe('list');
    await folder.replace('limits.yaml', 'limits: { login: { rate: 7 } }\nlists:\n  deny:\n');
    await until(() => app.quota('login', 'b'), 7);
    expect([await sourceOf(app), (await app.service.listEntries()).entries]).toEqual(['memory', []]);
  });

  it('may be of limits that only the policy has', async () => {
    const app = await start({});
    const limits = { new: { algo: 'gcra', rate: 3, interval: '1s' } };
    tell(app.nest, { limits, lists: { deny: [{ identity: 'a', limit: 'new' }] } });
    expect(await app.service.for('new').consume('a')).toMatchObject({ allowed: false, source: 'list' });
    expect(await sourceOf(app)).toBe('memory');
  });

  it('stand in for the same entries of the options, which hold again after them', async () => {
    const lists = { deny: [{ identity: 'a' }, { identity: 'b' }] };
    const app = await start({ lists: { allow: [{ identity: 'a' }] } }, { lists });
    const listed = async (key: string) => (await app.service.listEntries({ key })).entries[0]!;
    expect([await listed('a'), await listed('b')]).toMatchObject([
      { list: 'allow', source: 'policy' },
      { list: 'deny', source: 'configured' },
    ]);
    tell(app.nest, {});
    expect(await listed('a')).toMatchObject({ list: 'deny', source: 'configured' });
    expect((await app.service.listEntries()).entries).toHaveLength(2);
  });

  it('are stood in for by a change until unlist, whatever the policy says meanwhile', async () => {
    const app = await start(DENY_A);
    expect(await app.service.unlist({ identity: 'a' })).toBe(false);
    await app.service.allow({ identity: 'a' });
    expect((await app.service.listEntries()).entries).toMatchObject([{ list: 'allow', source: 'changed' }]);
    expect((await app.service.for('login').consume('a')).allowed).toBe(true);
    tell(app.nest, {});
    expect((await app.service.listEntries({ key: 'a' })).entries[0]).toMatchObject({
      list: 'allow',
      source: 'changed',
    });
    tell(app.nest, { lists: { deny: [{ identity: 'a', reason: 'again' }] } });
    expect((await app.service.listEntries({ key: 'a' })).entries[0]).toMatchObject({
      list: 'allow',
      source: 'changed',
    });
    expect(await app.service.unlist({ identity: 'a' })).toBe(true);
    expect((await app.service.listEntries({ key: 'a' })).entries[0]).toMatchObject({
      list: 'deny',
      source: 'policy',
      reason: 'again',
    });
    expect((await app.service.for('login').consume('a')).allowed).toBe(false);
  });

  it.each([
    [
      'an unknown limit',
      { lists: { deny: [{ identity: 'a', limit: 'lgoin' }] } },
      "lists.deny[0]: unknown limit 'lgoin', expected a limit of 'define', 'forFeature' or 'limits', or, in the policy's 'limits', an 'algo': 'hourly', 'login'",
    ],
    [
      'an entry on both lists',
      { lists: { allow: [{ ip: '10.0.0.1' }], deny: [{ ip: '::ffff:10.0.0.1' }] } },
      'policy lists.deny[0]: the same entry is also in policy lists.allow[0]. Keep it on one of the lists',
    ],
  ])('are refused with %s', async (_, policy, message) => {
    const app = await start(DENY_A);
    tell(app.nest, policy);
    expect(errors).toEqual([expect.stringContaining(message)]);
    expect(await sourceOf(app)).toBe('list');
    await expect(start(policy)).rejects.toThrow(message.replace(/policy lists/g, 'policy.source() lists'));
  });

  it('are of each instance, and changes of all of them, also after a restart', async () => {
    const place = { redis, prefix: freshPrefix() } as const;
    const [one, two] = [await start(DENY_A, place), await start({}, place)];
    expect([await sourceOf(one), await sourceOf(two)]).toEqual(['list', 'redis']);
    await two.service.allow({ identity: 'a' });
    await until(listOf(one), 'allow');
    const three = await start(DENY_A, place);
    expect(await listOf(three)()).toBe('allow');
    await three.service.unlist({ identity: 'a' });
    await until(listOf(one), 'deny');
    await until(listOf(two), undefined);
    expect([await listOf(three)(), await sourceOf(one), await sourceOf(two)]).toEqual(['deny', 'list', 'redis']);
  });
});

const entryOf = (of: string) => (of.endsWith('*') ? { pattern: of } : { identity: of });
const listsOf = (all: Record<string, 'allow' | 'deny'>) => {
  const on = (name: string) => Object.keys(all).filter((each) => all[each] === name);
  return { allow: on('allow').map(entryOf), deny: on('deny').map(entryOf) };
};
const chainOf = (identity: string) => [
  identity,
  ...['t:b*', 't:*'].filter((prefix) => identity.startsWith(prefix.slice(0, -1))),
];

describe('any history of policies and changes of lists', () => {
  const list = fc.constantFrom('allow' as const, 'deny' as const);
  const key = fc.constantFrom('a', 't:a', 't:*', 't:b*');
  const entries = fc.dictionary(key, list);
  const step = fc.oneof(
    fc.record({ kind: fc.constant('policy' as const), entries, isWrong: fc.boolean() }),
    fc.record({ kind: fc.constant('change' as const), key, list: fc.option(list) }),
  );
  it('makes what the operator says of an entry, or else the policy, or else the options', async () => {
    await fc.assert(
      fc.asyncProperty(entries, fc.array(step, { maxLength: 12 }), async (configured, steps) => {
        const app = await RatesApp.start({ policy: { source: () => ({}) }, lists: listsOf(configured) });
        try {
          const operator = new Map<string, 'allow' | 'deny'>();
          let current: Record<string, 'allow' | 'deny'> = {};
          for (const each of steps) {
            if (each.kind === 'policy') {
              const limits = each.isWrong ? { hourly: { queue: 1 } } : {};
              tell(app.nest, { limits, lists: listsOf(each.entries) });
              if (!each.isWrong) current = each.entries;
            } else if (each.list === null) {
              expect(await app.service.unlist(entryOf(each.key))).toBe(operator.delete(each.key));
            } else {
              await app.service[each.list](entryOf(each.key));
              operator.set(each.key, each.list);
            }
          }
          for (const identity of ['a', 't:a', 't:b1', 't:c', 'x']) {
            const found = chainOf(identity).map((at) => operator.get(at) ?? current[at] ?? configured[at]);
            const wanted = found.find((each) => each !== undefined);
            expect((await app.service.listEntries({ key: identity })).entries[0]?.list).toBe(wanted);
            const { allowed, source } = await app.service.for('login').consume(identity, 11);
            expect([allowed, source]).toEqual(wanted === undefined ? [false, 'memory'] : [wanted === 'allow', 'list']);
          }
        } finally {
          await app.close();
        }
      }),
      { numRuns: propertyRuns(60) },
    );
  });
});
