import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Ajv } from 'ajv';
import fc from 'fast-check';
import ts from 'typescript';
import { algorithms } from '../../../lib/engine/algorithms/index.js';
import { COMMON_OPTIONS } from '../../../lib/app/config/limit-options.js';
import { PlainValue } from '../../../lib/app/policy/located.js';
import { Problems } from '../../../lib/app/policy/problems.js';
import { readPolicy } from '../../../lib/app/policy/read-policy.js';
import { policyOptions } from '../../../lib/app/policy/policy-options.js';
import { policySchema } from '../../../lib/app/policy/schema.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { propertyRuns } from '../../support/limits/property-runs.js';

const schema = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'limits.schema.json'), 'utf8')) as object;
const isValid = new Ajv({ strict: true, allErrors: true, allowUnionTypes: true }).compile(schema);

function isRead(policy: unknown): boolean {
  return 'policy' in readPolicy('', new PlainValue(policy, ''), new Problems());
}

/** Options that only functions or the limit's place give. */
const NO_DATA = ['name', 'skip', 'body', 'answer', 'onDecision', 'onRefused', 'onNear'];

describe('the JSON Schema of policies', () => {
  it('is the one in the package: `npm run build:schema` writes it', () => {
    expect(schema).toEqual(policySchema());
  });

  it('is what the package exports', async () => {
    const { exports } = JSON.parse(readFileSync(join(PACKAGE_FOLDER, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    expect(exports['./limits.schema.json']).toBe('./limits.schema.json');
  });

  it('knows every option of limits that is data', () => {
    const common = COMMON_OPTIONS.filter((name) => !NO_DATA.includes(name));
    // An algorithm may have an option of its own by the name of a common one.
    const all = new Set(['algo', ...Object.keys(algorithms.options), ...common]);
    expect(Object.keys(policyOptions).toSorted()).toEqual([...all].toSorted());
  });

  it('knows every property of the type of limits', () => {
    const files = [
      'app/config/common-limit-options',
      'app/config/limit-definition',
      'storage/features/borrowing/terms',
      'storage/features/candidates/options',
      'storage/features/prefetch/terms',
      'storage/features/priorities/priorities',
      'storage/features/shares/options',
      'storage/features/usage/usage',
      'app/hooks/decision-hook',
    ];
    const statements = files.flatMap((name) => {
      const path = join(PACKAGE_FOLDER, 'lib', `${name}.ts`);
      return [...ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest).statements];
    });
    const names = statements
      .filter(ts.isInterfaceDeclaration)
      .filter(({ name }) =>
        [
          'CommonLimitOptions',
          'DecisionHooksOptions',
          'SharedLimitOptions',
          'CandidateLimitOptions',
          'PrefetchLimitOptions',
          'ReservingLimitOptions',
          'RecordedLimitOptions',
          'BorrowingOptions',
          'LendingLimitOptions',
        ].includes(name.text),
      )
      .flatMap(({ members }) => members.map(({ name }) => (name as ts.Identifier).text));
    expect(names.toSorted()).toEqual(COMMON_OPTIONS.toSorted());
  });

  it('has a description of every option', () => {
    const { properties } = (policySchema()['definitions'] as Record<string, { properties: Record<string, object> }>)[
      'limit'
    ]!;
    expect(Object.keys(properties)).toEqual(Object.keys(policyOptions));
    for (const property of Object.values(properties))
      expect(property).toMatchObject({ description: expect.any(String) });
  });

  it.each([
    [{}],
    [{ $schema: './limits.schema.json', limits: null, overrides: null, lists: null }],
    [{ limits: { api: { algo: 'gcra', rate: 100, interval: '1m', burst: 5, key: 'header:x-a' } } }],
    [{ limits: { api: { rate: 1 } }, overrides: { api: { 'tenant:*': { rate: 5, mode: 'off' } } } }],
    [{ limits: { api: { blockFor: ['1m', 600_000], forgetAfter: '1d', candidate: { algo: 'gcra', burst: 5 } } } }],
    [
      {
        limits: { api: { candidate: null } },
        overrides: { api: { a: { candidate: null }, b: { candidate: { limit: 5 } } } },
      },
    ],
    [{ limits: { api: { blockFor: ['10m', '1m'] } } }, false],
    [{ lists: { allow: [{ identity: 'a', limit: 'api', reason: 'x' }], deny: [{ ip: '::/0' }, { pattern: 't:*' }] } }],
    [{ limits: { gpu: { share: { by: 'user', floor: 0.05 } } } }],
    [
      {
        limits: {
          gpu: {
            algo: 'token-bucket',
            rate: 10,
            interval: '1m',
            share: { by: 'header:x-tenant', weight: { acme: 3, 'a b': 1 }, unlisted: 'together', floor: 0.3 },
          },
        },
      },
    ],
    [{ limits: { gpu: { share: { by: 'user', weight: { 42: 1 } } } } }, false],
    [{ limits: { gpu: { share: { by: 'user', unlisted: 'together' } } } }, false],
    [{ limits: { gpu: { share: { by: 'ip', floor: 0.6, weight: { 'ip:1': 1, 'ip:2': 1 } } } } }, false],
    [{ limits: { gpu: { algo: 'gcra', rate: 1, interval: 1, blockFor: 5, share: { by: 'ip' } } } }, false],
    [
      { limits: { gpu: { algo: 'token-bucket', rate: 1, interval: 1, refill: 'intervally', share: { by: 'ip' } } } },
      false,
    ],
    [{ lists: { allow: null, deny: [] } }],
    [{ lists: { deny: [{ ip: 'home' }] } }, false],
  ])('allows %j', (policy, reads = true) => {
    expect([isValid(policy), isRead(policy)]).toEqual([true, reads]);
  });

  it.each([
    ['an unknown section', { limts: {} }],
    ['an unknown option', { limits: { a: { reat: 1 } } }],
    ['a limit that says nothing', { limits: { a: {} } }],
    ['a wrong name', { limits: { ä: { rate: 1 } } }],
    ['a rate of 0', { limits: { a: { rate: 0 } } }],
    ['a fraction', { limits: { a: { rate: 1.5 } } }],
    ['a number as text', { limits: { a: { rate: '5' } } }],
    ['no duration', { limits: { a: { interval: 'often!' } } }],
    ['an unknown algorithm', { limits: { a: { algo: 'gcar', rate: 1, interval: 1 } } }],
    ['an option of another algorithm', { limits: { a: { algo: 'gcra', rate: 1, interval: 1, queue: 1 } } }],
    ['a missing option', { limits: { a: { algo: 'gcra', rate: 1 } } }],
    ['a wrong key', { limits: { a: { key: 'header:' } } }],
    ['an unknown mode', { limits: { a: { mode: 'on' } } }],
    ['half a prefetch', { limits: { a: { prefetch: { units: 1 } } } }],
    ['shares of nobody', { limits: { a: { share: { floor: 0.1 } } } }],
    ['a share that is no object', { limits: { a: { share: 'user' } } }],
    ['no weights', { limits: { a: { share: { by: 'user', weight: {} } } } }],
    ['a weight of 0', { limits: { a: { share: { by: 'user', weight: { 'user:1': 0 } } } } }],
    ['a weight', { limits: { a: { share: { by: 'user', weight: 3 } } } }],
    ['a floor above 1', { limits: { a: { share: { by: 'user', floor: 1.1 } } } }],
    ['an unknown option of shares', { limits: { a: { share: { by: 'user', weights: {} } } } }],
    [
      'units that cannot be shared',
      { limits: { a: { algo: 'leaky-bucket', rate: 1, interval: 1, share: { by: 'ip' } } } },
    ],
    [
      'units that cannot be prefetched',
      { limits: { held: { algo: 'concurrency', limit: 5, ttl: 1000, prefetch: { units: 1, ttl: '1s' } } } },
    ],
    ['no steps of blocks', { limits: { a: { blockFor: [] } } }],
    ['too many steps of blocks', { limits: { a: { blockFor: Array.from({ length: 101 }, () => 1) } } }],
    ['a step that is no duration', { limits: { a: { blockFor: ['often!'] } } }],
    ['an empty candidate', { limits: { a: { candidate: {} } } }],
    ['a candidate with a key', { limits: { a: { candidate: { key: 'ip' } } } }],
    ['a candidate with an option of another algorithm', { limits: { a: { candidate: { algo: 'gcra', queue: 1 } } } }],
    ['an override with a wrong candidate', { overrides: { a: { k: { candidate: { rate: 0 } } } } }],
    ['an unknown list', { lists: { dany: [] } }],
    ['a list that is an entry', { lists: { deny: { ip: '::1' } } }],
    ['an entry that names nobody', { lists: { deny: [{ limit: 'a' }] } }],
    ['an entry that names two', { lists: { deny: [{ ip: '::1', identity: 'a' }] } }],
    ['an entry that ends', { lists: { deny: [{ ip: '::1', expiresIn: '1h' }] } }],
    ['an entry with a number', { lists: { deny: [{ identity: 5 }] } }],
    ['a pattern as an identity', { lists: { deny: [{ identity: 't:*' }] } }],
    ['an identity as a pattern', { lists: { deny: [{ pattern: 't' }] } }],
    ['an entry without a reason', { lists: { deny: [{ identity: 'a', reason: '' }] } }],
    ['a reason of two lines', { lists: { deny: [{ identity: 'a', reason: 'a\nb' }] } }],
    ['a reason that turns round', { lists: { deny: [{ identity: 'a', reason: 'a\u202eb' }] } }],
    ['a key with a star within', { overrides: { a: { 'a*b': { rate: 1 } } } }],
    ['an override of the key', { overrides: { a: { k: { key: 'ip' } } } }],
    ['an override that says nothing', { overrides: { a: { k: {} } } }],
  ])('refuses %s, as the reader does', (_, policy) => {
    expect([isValid(policy), isRead(policy)]).toEqual([false, false]);
  });

  it.each(algorithms.names.filter((name) => name !== 'adaptive'))('asks for what %s cannot do without', (algo) => {
    const all = { rate: 5, interval: '1m', period: 'day', limit: 5, ttl: '1m' };
    const own = Object.entries(all).filter(([option]) => Object.hasOwn(algorithms.get(algo)!.options, option));
    expect(isRead({ limits: { a: { algo, ...Object.fromEntries(own) } } })).toBe(true);
    for (const [left] of own) {
      const limits = { a: { algo, ...Object.fromEntries(own.filter(([option]) => option !== left)) } };
      expect([left, isValid({ limits }), isRead({ limits })]).toEqual([left, false, false]);
    }
  });

  it('asks for the scope of an adaptive limit', () => {
    expect(isRead({ limits: { a: { algo: 'adaptive', scope: 'instance' } } })).toBe(true);
    const limits = { a: { algo: 'adaptive' } };
    expect([isValid({ limits }), isRead({ limits })]).toEqual([false, false]);
  });

  it('allows what the reader takes', () => {
    const value = fc.constantFrom<unknown>(
      1,
      5,
      0,
      -1,
      1.5,
      0.5,
      1e9,
      '1m',
      '10s',
      '.5 h',
      '1 minute',
      '+2 days',
      '1y',
      '2y',
      '',
      'x',
      'greedy',
      'day',
      'UTC',
      'ip',
      'user',
      'header:x-a',
      'header:',
      'shadow',
      'off',
      'allow',
      'skip',
      'guard',
      'instance',
      'failed',
      true,
      null,
      { units: 1, ttl: 5 },
      { units: 1 },
      { rate: 5 },
      { algo: 'gcra', rate: 5 },
      { algo: 'calendar-window', period: 'day' },
      { algo: 'gcra', queue: 5 },
      ['1m', '1h'],
      ['1h', 5],
      [],
      {},
    );
    const limit = fc.dictionary(
      fc.constantFrom(...Object.keys(policyOptions).filter((option) => option !== 'algo')),
      value,
      {
        minKeys: 1,
        maxKeys: 3,
      },
    );
    const text = fc.constantFrom<unknown>('10.0.0.0/8', '::1', 'a', 't:*', '*', '', 'ä', 5, null, 'x'.repeat(512));
    const entry = fc.dictionary(fc.constantFrom('ip', 'identity', 'pattern', 'limit', 'reason'), text, { maxKeys: 3 });
    let taken = 0;
    const numRuns = propertyRuns(3000);
    fc.assert(
      fc.property(limit, limit, entry, (one, other, listed) => {
        const policy = { limits: { a: one }, overrides: { a: { k: other } } };
        const lists = { deny: [listed] };
        for (const part of [policy, { limits: policy.limits }, { overrides: policy.overrides }, { lists }]) {
          if (!isRead(part)) continue;
          taken++;
          expect([part, isValid(part)]).toEqual([part, true]);
        }
      }),
      { numRuns },
    );
    expect(taken).toBeGreaterThan(numRuns / 30);
  });
});
