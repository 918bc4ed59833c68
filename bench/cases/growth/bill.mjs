/** What a day costs on Redis: a million users with 10 requests a minute each. */
import { ours } from '../../contenders/ours.mjs';
import { rateLimiterFlexible, rateLimitRedis, throttler } from '../../contenders/peers.mjs';
import { steady } from '../../limits.mjs';
import { fill, keysOf, median, round, roundOf, WARM_UP_MS } from '../../measure.mjs';
import { bars } from '../../report/chart.mjs';
import { micros, table, thousands, whole } from '../../report/format.mjs';
import { looking, usedBytes } from '../../servers.mjs';

const CONTENDERS = [ours, throttler, rateLimiterFlexible, rateLimitRedis];
const USERS = 1_000_000;
const A_MINUTE = 10;
const PER_SECOND = (USERS * A_MINUTE) / 60;
const DAY_SECONDS = 86_400;
/** Of an instance with few requests at a time, and of a busy one. */
const IN_FLIGHT = [16, 256];

/** Gives each user a counter, and tells the memory that all of them take. */
async function fillFor(asked, redis, users) {
  await round(asked.check, { inFlight: 256, keyOf: () => 'warm', ms: WARM_UP_MS });
  const before = await usedBytes(redis);
  await fill(asked, 0, users);
  return (((await usedBytes(redis)) - before) / users) * USERS;
}

/** A part of the users costs its part: what a check costs hardly depends on how many there are. */
function measure({ url, ms, rounds, quick }) {
  const users = quick ? USERS / 20 : USERS / 4;
  return looking(url, async (redis) => {
    await redis.flushall();
    const rows = [];
    for (const contender of CONTENDERS) {
      const asked = await contender.make(url, [steady]);
      rows.push({ name: contender.name, asked, bytes: await fillFor(asked, redis, users), loads: {} });
    }
    for (const inFlight of IN_FLIGHT)
      await measureLoad(rows, { inFlight, keyOf: keysOf(users), ms, servers: [redis] }, rounds);
    for (const { asked } of rows) await asked.close();
    await redis.flushall();
    return rows.map(({ name, bytes, loads }) => ({ name, bytes, loads }));
  });
}

async function measureLoad(rows, options, rounds) {
  const results = new Map(rows.map((row) => [row, []]));
  for (let i = 0; i < rounds; i++) {
    for (const row of i % 2 === 0 ? rows : rows.toReversed()) {
      const result = await roundOf(row.asked, options);
      if (result.refused > 0) throw new Error(`${row.name} refused`);
      results.get(row).push(result);
    }
  }
  for (const [{ loads }, measured] of results) {
    loads[options.inFlight] = {
      cpuMicros: median(measured.map(({ cpuMicros }) => cpuMicros)),
      serverCpuMicros: median(measured.map(({ serverCpuMicros }) => serverCpuMicros)),
    };
  }
}

const secondsADay = (micros) => (micros / 1e6) * PER_SECOND * DAY_SECONDS;

const cost = ({ loads }, inFlight) => loads[inFlight].serverCpuMicros;

function section(rows, { chart }) {
  const [few, many] = IN_FLIGHT;
  const busy = rows.map((row) => ({ name: row.name, value: secondsADay(cost(row, many)) }));
  return [
    '## What a day costs',
    `${whole(USERS)} users with ${A_MINUTE} requests a minute each are ${thousands(PER_SECOND)}, all day; one limit each, all counters alive; timed with a part of the users. The load of an instance decides how many checks share a call: ${few} or ${many} in flight. A core has ${whole(DAY_SECONDS)} seconds a day.`,
    chart('growth-bill', bars(`Redis CPU seconds a day, ${many} in flight`, busy, 's')),
    table(
      [
        '',
        ...IN_FLIGHT.flatMap((each) => [`Redis CPU seconds a day, ${each} in flight`, 'cores']),
        `client CPU a check, ${many} in flight`,
        'Redis memory',
      ],
      rows.map((row) => [
        row.name,
        ...IN_FLIGHT.flatMap((inFlight) => {
          const seconds = secondsADay(cost(row, inFlight));
          return [whole(Math.round(seconds)), (seconds / DAY_SECONDS).toFixed(2)];
        }),
        micros(row.loads[many].cpuMicros),
        `${(row.bytes / 1e6).toFixed(0)} MB`,
      ]),
    ),
  ];
}

export const bill = { name: 'growth:bill', measure, section };
