import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { headerIdentity, type LimitDefinition } from '../../lib/index.js';
import { ConsoleApp } from '../console/console-app.js';
import { freshPrefix } from '../support/limits/stores.js';
import { runHere } from './run-program.js';

const HOUR = { rate: 10, interval: '1h' } as const;
const define = {
  things: { algo: 'gcra', ...HOUR, key: () => 'anybody' },
  plain: { algo: 'gcra', ...HOUR },
  keys: { algo: 'fixed-window', ...HOUR, key: 'header:x-api-key' },
} as const satisfies Record<string, LimitDefinition>;
const prefix = freshPrefix();
const place = ['--redis', process.env['TEST_REDIS_URL']!, '--prefix', prefix];
const ACME = headerIdentity('x-api-key', 'acme');

let app: ConsoleApp;
beforeAll(async () => {
  app = await ConsoleApp.start({ limits: { define, redis: process.env['TEST_REDIS_URL']!, prefix, timeout: '5s' } });
  await app.service.for('keys').consume(ACME);
  await app.service.for('things').consume('anybody');
  await app.console.recorder.flush();
});
afterAll(() => app.close());

const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await runHere([...args, '--json', ...place]);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as { before: unknown; after: unknown };
};

it('limits that instances with a console publish need no definition', async () => {
  const { before } = await json('rates', 'set', 'keys', 'rate=500', '--key', ACME);
  expect(before).toMatchObject({ rate: { options: { algo: 'fixed-window', rate: 10 }, source: 'configured' } });
  await json('rates', 'clear', 'keys', '--key', ACME);
  await json('block', 'keys', ACME);
  expect((await app.service.for('keys').peek(ACME)).allowed).toBe(false);
  await json('unblock', 'keys', ACME);
});

it('a blocked key is found by a whole part of it', async () => {
  const [key, other] = ['ann@x.com|203.0.113.7', 'ann@x.com|203.0.113.8'];
  await app.service.for('things').block(key, '1h');
  await app.service.for('things').block(other, '1h');
  await app.service.for('plain').block('ip:203.0.113.9', '1h');
  await app.console.recorder.flush();
  const unblock = async (part: string) => (await runHere(['unblock', 'things', part, ...place])).stderr;
  const found = await unblock('ann@x.com');
  expect(found).toContain("of 'things' is not blocked, so there is nothing to unblock; blocked keys that contain it: ");
  for (const each of [key, other]) expect(found).toContain(`'${each}'`);
  for (const part of ['nn@x.com', '203.0.113.9']) expect(await unblock(part)).toMatch(/nothing to unblock$/m);
  await json('unblock', 'things', key);
  await app.console.recorder.flush();
  expect(await unblock('203.0.113.7')).toMatch(/nothing to unblock$/m);
});

it('what was written of a limit does not stand for its configuration', async () => {
  const { before } = await json('rates', 'set', 'keys', 'rate=500', '--key', ACME, '--limit', 'fixed-window:77/1h');
  expect(before).toMatchObject({ rate: { options: { rate: 10 } } });
  await json('rates', 'clear', 'keys', '--key', ACME);
});

it.each([
  ['rates', 'set', 'keys', 'rate=500', '--key', 'acme'],
  ['rates', 'set', 'keys', 'rate=500', '--key', 'acme', '--limit', 'fixed-window:10/1h'],
  ['rates', 'mode', 'keys', 'off', '--key', 'acme'],
  ['block', 'keys', 'acme'],
])('a key that the limit never counts is refused by %s %s', async (...args) => {
  const { code, stderr } = await runHere([...args, ...place]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("headerIdentity('x-api-key'")]);
  expect((await app.service.listRates('keys')).overrides).toEqual([]);
});

it('an address is a key of a limit by a function, and not of one without a key', async () => {
  await json('block', 'things', '203.0.113.7');
  expect((await app.service.for('things').peek('203.0.113.7')).allowed).toBe(false);
  const { code, stderr } = await runHere(['block', 'plain', '203.0.113.7', ...place]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("Use 'ip:203.0.113.7', or '--force'")]);
});

it('the value of a header is hashed', async () => {
  await json('rates', 'set', 'keys', 'rate=500', '--key', 'header:X-Api-Key:acme');
  expect((await app.service.getRate('keys', { key: ACME })).options).toMatchObject({ rate: 500 });
  await json('rates', 'clear', 'keys', '--key', 'header:x-api-key:acme');
  await json('block', 'keys', 'header:x-api-key:acme');
  expect((await app.service.for('keys').peek(ACME)).allowed).toBe(false);
  await json('reset', 'keys', 'header:x-api-key:acme');
  await json('deny', 'header:x-api-key:acme');
  expect((await app.service.listEntries({ key: ACME })).entries).toMatchObject([{ list: 'deny' }]);
  await json('unlist', 'header:x-api-key:acme');
});

it('a limit that nobody publishes needs its definition', async () => {
  const { code, stderr } = await runHere(['rates', 'set', 'others', 'rate=500', ...place]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('--limit: missing')]);
});

it('a bare address is refused unless it is counted', async () => {
  const ofCode = ['--limit', 'gcra:10/1h', '--redis', process.env['TEST_REDIS_URL']!, '--prefix', freshPrefix()];
  for (const args of [
    ['rates', 'set', 'api', 'rate=5', '--key', '203.0.113.7'],
    ['block', 'api', '203.0.113.7'],
  ]) {
    const { code, stderr } = await runHere([...args, ...ofCode]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Use 'ip:203.0.113.7', or '--force'")]);
    expect((await runHere([...args, ...ofCode, '--force'])).code).toBe(0);
  }
});
