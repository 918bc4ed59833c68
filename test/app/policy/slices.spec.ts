import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { FilePolicySource, FunctionPolicySource } from '../../../lib/app/policy/sources.js';
import { RATE_LIMIT_POLICIES } from '../../../lib/app/config/tokens.js';
import type { Policies } from '../../../lib/app/policy/policies.js';
import { STEPS_A_TURN } from '../../../lib/app/policy/slices.js';
import { LimiterService, RateLimitModule } from '../../../lib/index.js';

const COUNT = 2000;
const limit = { algo: 'gcra', rate: 10, interval: '1s' };
const numbers = Array.from({ length: COUNT }, (_, index) => index);
const limits = Object.fromEntries(numbers.map((index) => [`limit${index}`, limit]));
const first = { first: limit };
/** What is in a section, and that section. */
const sections: [string, object][] = [
  ['limits', { limits }],
  [
    'overrides',
    { limits: first, overrides: { first: Object.fromEntries(numbers.map((i) => [`k${i}`, { rate: 5 }])) } },
  ],
  ['lists', { lists: { deny: numbers.map((index) => ({ identity: `k${index}` })) } }],
];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'policy-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Counts the turns of the event loop that others get while something is done. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let counts = true;
  const count = () => {
    turns++;
    if (counts) setImmediate(count);
  };
  setImmediate(count);
  await work();
  counts = false;
  return turns;
}

it.each(sections)('reads %s of a file and of a function in slices', async (section, policy) => {
  const path = join(folder, `${section}.json`);
  await writeFile(path, JSON.stringify(policy));
  for (const source of [new FilePolicySource(path), new FunctionPolicySource(() => policy, 60_000)]) {
    let reading: object = {};
    const turns = await turnsDuring(async () => (reading = await source.read()));
    expect(reading).toHaveProperty('policy');
    expect(turns).toBeGreaterThanOrEqual(COUNT / STEPS_A_TURN);
  }
});

it('puts a version in force in slices, and all of it at once', async () => {
  const app = await Test.createTestingModule({
    imports: [RateLimitModule.forRoot({ define: { first: limit as never }, policy: { source: () => ({}) } })],
  }).compile();
  app.useLogger(false);
  await app.init();
  const policies = app.get<Policies>(RATE_LIMIT_POLICIES);
  const changed = { limits: { ...limits, first: { rate: 20 } } };
  const reading = await new FunctionPolicySource(() => changed, 60_000).read();
  const quota = async () => (await app.get(LimiterService).for('first').peek('user:1')).quota;
  const quotas: number[] = [];
  const turns = await turnsDuring(async () => {
    const hearing = policies.hearInSlices(reading);
    await new Promise((resolve) => setImmediate(resolve));
    quotas.push(await quota());
    await hearing;
  });
  expect(turns).toBeGreaterThanOrEqual(COUNT / STEPS_A_TURN);
  expect([...quotas, await quota()]).toEqual([10, 20]);
  await app.close();
});
