import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { headerIdentity } from '../../lib/index.js';
import { hashOf } from '../support/limits/hashed.js';
import { ConsoleApp, type Lookup, type Problem } from './console-app.js';

const RATE = { algo: 'sliding-window', rate: 10, interval: '1h' } as const;
const SECRET = 'sk_live_4711';

let app: ConsoleApp;
beforeAll(async () => {
  const define = {
    users: { ...RATE, key: 'user', onMissingKey: 'refuse' },
    keys: { ...RATE, key: 'header:x-api-key' },
    addresses: { ...RATE, key: 'ip' },
  } as const;
  app = await ConsoleApp.start({ limits: { define }, controllers: [] });
});
afterAll(() => app.close());

const namesOf = async (identity: string) => {
  const response = await app.post('lookup', { identity });
  expect(response.status).toBe(200);
  return ((await response.json()) as Lookup).limits.map(({ limit }) => limit);
};

it('a look-up shows the limits that can count an identity', async () => {
  expect(await namesOf('user:42')).toEqual(['users']);
  expect(await namesOf('ip:2001:db8::1')).toEqual(['keys', 'addresses']);
  expect(await namesOf(headerIdentity('x-api-key', SECRET))).toEqual(['keys']);
});

it.each([
  ['203.0.113.7', "'ip:203.0.113.7'"],
  ['42', "'user:42'"],
  [SECRET, "'header:x-api-key:' and the value, which is hashed here"],
])('a look-up of %s says which forms there are', async (identity, form) => {
  const response = await app.post('lookup', { identity });
  const { errors } = (await response.json()) as Problem;
  expect([response.status, errors]).toEqual([
    400,
    [{ field: 'identity', message: expect.stringMatching(/^expected .*, received an identity that no limit counts$/) }],
  ]);
  expect(errors![0]!.message).toContain(form);
});

it('hashes the value of a header, as an operator knows it', async () => {
  const identity = `header:X-Api-Key:${SECRET}`;
  const response = await app.post('lookup', { identity });
  const { id, limits } = (await response.json()) as Lookup;
  const hashed = headerIdentity('x-api-key', SECRET);
  expect([id, limits.map(({ limit }) => limit)]).toEqual([hashOf(hashed), ['keys']]);
  expect(JSON.stringify(limits)).not.toContain(SECRET);
  await app.change('keys/block', { limit: 'keys', identity, duration: '1h' });
  expect((await app.service.for('keys').peek(hashed)).allowed).toBe(false);
  await app.change('keys/override', { limit: 'keys', identity, patch: { rate: 3 } });
  expect((await app.service.getRate('keys', { key: hashed })).options).toMatchObject({ rate: 3 });
  await app.change('lists', { list: 'deny', identity });
  expect((await app.service.listEntries({ key: hashed })).entries).toMatchObject([{ list: 'deny' }]);
  await app.change('lists/remove', { identity });
  const changes = await app.read('changes');
  expect(JSON.stringify(changes)).not.toContain(SECRET);
});

it('nothing is done to a key that cannot be', async () => {
  for (const [limit, identity] of [
    ['users', '42'],
    ['addresses', '203.0.113.7'],
    ['keys', SECRET],
  ] as const) {
    for (const [path, more] of [
      ['block', { duration: '1h' }],
      ['unblock', {}],
      ['reset', {}],
      ['refund', { units: 1 }],
      ['penalize', { units: 1 }],
      ['override', { patch: { rate: 3 } }],
    ] as const) {
      const response = await app.post(`keys/${path}`, { limit, identity, reason: 'x', ...more });
      const { errors } = (await response.json()) as Problem;
      expect([path, response.status, errors?.map(({ field }) => field)]).toEqual([path, 400, ['identity']]);
    }
    const listed = await app.post('lists', { list: 'deny', identity, limit, reason: 'x' });
    expect([listed.status, ((await listed.json()) as Problem).errors?.[0]?.field]).toEqual([400, 'identity']);
  }
});
