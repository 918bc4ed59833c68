import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../../../support/processes/built.js';
import { runProcesses } from '../../../support/processes/run-processes.js';
import { freshPrefix } from '../../../support/limits/stores.js';

const WORKER = fileURLToPath(new URL('../../../support/processes/hierarchy-worker.mjs', import.meta.url));

const PROCESSES = 4;

/** No units come back while the test runs. */
const window = (rate: number) => ({ algo: 'fixed-window', rate, interval: '1h' });
const levels = [
  { options: window(100), lends: 0.4 },
  { options: window(20), ceiling: 70 },
  { options: window(15), ceiling: 40 },
];
/** The first team asks for far more than the others. */
const paths = ['a/1', 'a/2', 'a/3', 'a/1', 'a/2', 'a/3', 'b/1', 'c/1'].map((path) => ['org', ...path.split('/')]);

beforeAll(ensureBuilt);

it('lets processes that race take all of the root, no more than any ceiling, and each unit at all levels', async () => {
  const input = {
    url: process.env['TEST_REDIS_URL'],
    prefix: freshPrefix(),
    levels,
    paths,
    requests: 400,
    inFlight: 32,
  };
  const results = await runProcesses<Record<string, number>>(
    WORKER,
    Array.from({ length: PROCESSES }, () => input),
  );
  const charged = (place: string) => results.reduce((sum, each) => sum + (each[place] ?? 0), 0);
  const sum = (places: readonly string[]) => places.reduce((total, place) => total + charged(place), 0);
  expect(charged('org')).toBeLessThanOrEqual(100);
  expect(charged('org')).toBe(sum(['org/a', 'org/b', 'org/c']));
  expect(charged('org/a')).toBe(sum(['org/a/1', 'org/a/2', 'org/a/3']));
  for (const team of ['org/a', 'org/b', 'org/c']) expect(charged(team)).toBeLessThanOrEqual(70);
  for (const user of ['org/a/1', 'org/a/2', 'org/a/3', 'org/b/1']) expect(charged(user)).toBeLessThanOrEqual(40);
  // What is kept from borrowers is there for each team within its own rate.
  for (const team of ['org/b', 'org/c']) expect(charged(team)).toBeGreaterThanOrEqual(15);
});
