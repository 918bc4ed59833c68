import { afterEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LimiterService, type ListsOptions, RateLimitConfigError, RateLimitModule } from '../../../../lib/index.js';
import { RateLimitTesting } from '../../../../lib/testing/index.js';
import { login, RatesApp } from '../overrides-app.js';

const closes: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0)) await close();
});

async function start(lists: ListsOptions): Promise<RatesApp> {
  const app = await RatesApp.start({ lists });
  closes.push(() => app.close());
  return app;
}

const disabled = (deny: unknown) =>
  RateLimitTesting.disable(
    Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ define: { login }, lists: { deny } as ListsOptions })],
    }),
  ).compile();
describe('lists of the module', () => {
  const lists: ListsOptions = {
    allow: [
      { identity: 'tenant:acme', reason: 'pays' },
      { ip: '10.0.0.0/8', limit: 'hourly' },
    ],
    deny: [{ pattern: 'tenant:*', limit: 'login' }, { ip: '::ffff:203.0.113.7' }],
  };

  it('hold from the start, and are told with those that are changed', async () => {
    const { service } = await start(lists);
    const configured = { source: 'configured', version: undefined, expiresAt: undefined };
    expect((await service.listEntries()).entries).toEqual([
      { entry: { ip: '203.0.113.7' }, list: 'deny', ...configured },
      { entry: { identity: 'tenant:acme' }, list: 'allow', reason: 'pays', ...configured },
      { entry: { ip: '10.0.0.0/8' }, list: 'allow', limit: 'hourly', ...configured },
      { entry: { pattern: 'tenant:*' }, list: 'deny', limit: 'login', ...configured },
    ]);
    expect(await service.for('login').consume('tenant:b')).toMatchObject({ allowed: false, source: 'list' });
  });

  it('give way to a change, and hold again after it', async () => {
    const { service } = await start(lists);
    const tenants = { pattern: 'tenant:*' };
    const consume = async () => (await service.for('login').consume('tenant:b')).allowed;
    expect(await service.unlist(tenants, { limit: 'login' })).toBe(false);
    await service.allow(tenants, { limit: 'login' });
    expect(await consume()).toBe(true);
    expect((await service.listEntries({ limit: 'login' })).entries).toMatchObject([
      { list: 'allow', source: 'changed' },
    ]);
    expect(await service.unlist(tenants, { limit: 'login' })).toBe(true);
    expect(await consume()).toBe(false);
    expect((await service.listEntries({ limit: 'login' })).entries).toMatchObject([
      { list: 'deny', source: 'configured' },
    ]);
  });

  it('come from a factory, too, and know the limits of features', async () => {
    const module = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRootAsync({ useFactory: () => ({ lists: { deny: [{ identity: 'x', limit: 'login' }] } }) }),
        RateLimitModule.forFeature({ login }),
      ],
    }).compile();
    await module.init();
    closes.push(() => module.close());
    expect(await module.get(LimiterService).for('login').consume('x')).toMatchObject({ source: 'list' });
  });

  it('refuse nobody where tests let everything pass, and are still read', async () => {
    const module = await disabled([{ identity: 'x' }, { ip: '0.0.0.0/0' }]);
    await module.init();
    closes.push(() => module.close());
    expect(await module.get(LimiterService).for('login').consume('x')).toMatchObject({
      allowed: true,
      source: 'memory',
    });
    await expect(disabled([{ ip: 'x' }])).rejects.toThrow(
      "lists.deny[0].ip: expected an IP address, or a network in CIDR notation, such as '203.0.113.7', '10.0.0.0/8' or '2001:db8::/32', without a zone, received 'x'",
    );
  });

  it.each<[string, unknown, string | RegExp]>([
    ['no object', [], 'lists: expected an object of options, received []'],
    ['an unknown list', { block: [] }, "lists: unknown option 'block', expected one of allow, deny, status"],
    ['no list', { deny: { ip: '10.0.0.1' } }, "lists.deny: expected a list of entries, received { ip: '10.0.0.1' }"],
    ['a status', { status: 404 }, 'lists.status: expected 403 or 429, received 404'],
    ['an entry', { allow: ['10.0.0.1'] }, /lists\.allow\[0\]: expected one of.+, received '10\.0\.0\.1'/],
    [
      'a network',
      { deny: [{ ip: '10.0.0.1' }, { ip: '10.0.0.1/8' }] },
      "lists.deny[1].ip: expected the network '10.0.0.0/8' or the address '10.0.0.1', received '10.0.0.1/8'",
    ],
    [
      'a pattern',
      { deny: [{ pattern: '*' }] },
      "lists.deny[0].pattern: expected the beginning of keys with a star at the end such as 'tenant:*', of 2 to 512 characters and no other star, received '*'",
    ],
    ['a limit', { deny: [{ ip: '10.0.0.1', limit: 'nope' }] }, "lists.deny[0]: unknown limit 'nope'"],
    ['no limit', { deny: [{ ip: '10.0.0.1', limit: 7 }] }, "lists.deny[0].limit: expected a limit's name, received 7"],
    ['a reason', { deny: [{ ip: '10.0.0.1', reason: '' }] }, /lists\.deny\[0\]\.reason: expected .+, received ''/],
    [
      'an option',
      { deny: [{ ip: '10.0.0.1', expiresIn: 1 }] },
      "lists.deny[0]: expected one of { ip: '10.0.0.0/8' }, { identity: 'tenant:acme' } and { pattern: 'tenant:*' }, received { ip: '10.0.0.1', expiresIn: 1 }",
    ],
    [
      'a contradiction',
      { allow: [{ ip: '10.0.0.1' }], deny: [{ ip: '::ffff:10.0.0.1' }] },
      'lists.deny[0]: the same entry is also in lists.allow[0]. Keep it on one of the lists',
    ],
  ])('with %s that is wrong stop the app from starting', async (_, wrong, message) => {
    const starting = start(wrong as ListsOptions);
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow(message);
  });
});
