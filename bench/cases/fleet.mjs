/** What one Redis core carries of a fleet: many processes with few checks in flight each. */
import { ours, oursFixed, oursGathering } from '../contenders/ours.mjs';
import { rateLimiterFlexible } from '../contenders/peers.mjs';
import { compareInstances } from '../instances.mjs';
import { serverMicros } from '../measure.mjs';
import { micros, table, thousands } from '../report/format.mjs';
import { looking } from '../servers.mjs';

const INSTANCES = 8;
const IN_FLIGHT = 4;
const LIMITS = [1, 20];
const KEYS = 499;
const CONTENDERS = [ours, oursFixed, oursGathering, rateLimiterFlexible];

function measure({ url, ms, rounds, quick }) {
  return looking(url, async (redis) => {
    const microsOfEach = async () => [await serverMicros(redis)];
    const common = { target: url, keys: KEYS, inFlight: IN_FLIGHT, ms, rounds, microsOfEach };
    const names = CONTENDERS.map(({ name }) => name);
    const count = quick ? 3 : INSTANCES;
    const fleets = [];
    for (const limits of LIMITS) {
      await redis.flushall();
      const results = await compareInstances(names, { ...common, count, limits });
      fleets.push(...results.map((result) => ({ count, limits, ...result, carried: 1e6 / result.serverCpuMicros })));
    }
    return fleets;
  });
}

function section(fleets, { goalsOf }) {
  return [
    '## A fleet',
    `${fleets[0].count} processes with ${IN_FLIGHT} checks in flight each, of one limit or of 20 in turn, at one server. They share the processors with it, so the Redis CPU of a decision says more than the decisions a second: how many decisions one core carries if Redis has it to itself. \`gather\` lets an instance that asks much wait up to 1 ms, so that more checks share a call. The peer has fixed windows alone, so like is compared with like; a token bucket stores more.`,
    table(
      ['limits', '', 'one Redis core carries', 'Redis CPU each', 'client CPU each', 'decisions here'],
      fleets.map(({ limits, name, carried, serverCpuMicros, cpuMicros, perSecond }) => [
        limits,
        name,
        thousands(carried),
        micros(serverCpuMicros, 2),
        micros(cpuMicros),
        thousands(perSecond),
      ]),
    ),
    ...goalsOf('fleet'),
  ];
}

export const fleet = { name: 'fleet', measure, section };
