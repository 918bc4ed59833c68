/** One limit over three regions: what a decision takes, how much of the limit can be used, and what the home is asked. */
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../measure.mjs';
import { REGIONS, RTT_MS, startWorld } from '../regions/world.mjs';
import { lines } from '../report/chart.mjs';
import { micros, percent, table, thousands, whole } from '../report/format.mjs';
import { looking } from '../servers.mjs';

const SHARES = [0.8, 0.15, 0.05];
const CUT_MS = 10_000;
/** A bucket that refills 200 units a second; more are asked for. */
const REFILLED = 200;
const ASKED = 300;
/** While a region is cut off the limit is not exceeded. */
const ASKED_OF_CUT = 150;
const BUCKET = { algo: 'token-bucket', rate: REFILLED, interval: '1s', burst: 3 * REFILLED };
const WINDOW = { algo: 'sliding-window', rate: 2000, interval: '10s' };
const INTERVAL_MS = 10_000;
const AMPLE = { algo: 'sliding-window', rate: 500_000_000, interval: '60s' };
const BIN_MS = 500;
/** How far the clocks of processes of one machine may seem apart. */
const CLOCK_MS = 2;

const define = {
  bucket: { ...BUCKET, scope: 'world' },
  window: { ...WINDOW, scope: 'world' },
  world: { ...AMPLE, scope: 'world' },
  // The same limit, of one region alone.
  local: AMPLE,
  hot: { ...AMPLE, scope: 'world' },
};

const percentile = (values, share) => values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];

async function latencies(world, { quick }) {
  const job = { job: 'latencies', limits: ['world', 'local'], count: quick ? 1000 : 3000 };
  // The farther ones.
  const inputs = [undefined, job, undefined];
  await world.run(inputs);
  const rounds = [];
  for (let i = 0; i < (quick ? 3 : 9); i++) {
    const [, taken] = await world.run(inputs);
    rounds.push(taken.map((all) => ({ p50: percentile(all, 0.5), p99: percentile(all, 0.99) })));
  }
  const of = (index, field) => median(rounds.map((round) => round[index][field]));
  return {
    world: { p50: of(0, 'p50'), p99: of(0, 'p99') },
    local: { p50: of(1, 'p50'), p99: of(1, 'p99') },
    more: median(rounds.map(([here, there]) => here.p99 - there.p99)),
  };
}

/** The demand of each region, in phases: `[milliseconds, the share of each region]`. */
async function demand(world, limit, asked, phases) {
  const inputs = REGIONS.map((_, region) => ({
    job: 'demand',
    limit,
    phases: phases.map(([ms, shares]) => [ms, shares[region] * asked]),
  }));
  const start = performance.timeOrigin + performance.now();
  return { start, answers: await world.run(inputs) };
}

const between = (answers, from, to) =>
  answers.flat().filter(([at, , outcome]) => outcome === 1 && at >= from && at < to).length;

/** The most units that were surely used within a stretch of time. */
function mostWithin(answers, stretchMs) {
  const used = answers.flat().filter(([, , outcome]) => outcome === 1);
  const begins = used.map(([at]) => at).toSorted((a, b) => a - b);
  const ends = used.map(([at, took]) => at + took).toSorted((a, b) => a - b);
  let ended = 0;
  let most = 0;
  for (const [first, from] of begins.entries()) {
    while (ended < ends.length && ends[ended] < from + stretchMs) ended++;
    most = Math.max(most, ended - first);
  }
  return most;
}

/** More than a limit allows in any stretch of these. */
const overBucket = (answers) =>
  Math.max(
    0,
    ...[500, 1000, 5000].map(
      (ms) => mostWithin(answers, ms - CLOCK_MS) - BUCKET.burst - Math.floor((REFILLED * ms) / 1000),
    ),
  );
const overWindow = (answers) => Math.max(0, mostWithin(answers, INTERVAL_MS - CLOCK_MS) - WINDOW.rate);

async function shift(world, { quick }) {
  const [warm, ms] = [6000, quick ? 6000 : 15_000];
  const { start, answers } = await demand(world, 'bucket', ASKED, [
    [warm + ms, SHARES],
    [2000 + ms, SHARES.toReversed()],
  ]);
  const turn = start + warm + ms;
  const share = (from, to) => between(answers, from, to) / ((REFILLED * (to - from)) / 1000);
  const bins = Math.floor((turn + ms + 2000 - start) / BIN_MS);
  return {
    before: share(start + warm, turn),
    during: share(turn, turn + 2000),
    after: share(turn + 2000, turn + 2000 + ms),
    over: overBucket(answers),
    turnS: (turn - start) / 1000,
    series: answers.map((own) =>
      Array.from({ length: bins }, (_, bin) => {
        const from = start + bin * BIN_MS;
        return [(bin * BIN_MS) / 1000, (between([own], from, from + BIN_MS) * 1000) / BIN_MS];
      }),
    ),
  };
}

async function cut(world, { quick }) {
  const cutMs = quick ? 4000 : CUT_MS;
  const before = INTERVAL_MS;
  const phases = [[before + cutMs + 2 * INTERVAL_MS, [1 / 3, 1 / 3, 1 / 3]]];
  const running = demand(world, 'window', ASKED_OF_CUT, phases);
  await sleep(before);
  world.proxies[1].cut();
  await sleep(cutMs);
  world.proxies[1].mend();
  const { start, answers } = await running;
  const during = answers[1].filter(([at]) => at >= start + before && at < start + before + cutMs);
  const count = (wanted) => during.filter(([, , outcome]) => outcome === wanted).length;
  return {
    cutMs,
    longestMs: Math.max(...during.map(([, took]) => took)),
    allowed: count(1),
    refused: count(0),
    failed: count(-1),
    over: overWindow(answers),
    used:
      between(answers, start + before + cutMs + INTERVAL_MS, start + before + cutMs + 2 * INTERVAL_MS) / WINDOW.rate,
  };
}

/** The calls that the home has been asked, without those of who looks. */
async function callsOf(redis) {
  const found = [...(await redis.info('commandstats')).matchAll(/cmdstat_(?:evalsha|eval):calls=(\d+)/g)];
  return found.reduce((sum, [, calls]) => sum + Number(calls), 0);
}

async function hot(world, { quick }) {
  const ms = quick ? 3000 : 8000;
  const inputs = REGIONS.map(() => ({ job: 'flood', limit: 'hot', inFlight: 512, ms }));
  await world.run(inputs);
  return looking(world.home.url, async (redis) => {
    const before = await callsOf(redis);
    const start = performance.now();
    const counts = await world.run(inputs);
    const seconds = (performance.now() - start) / 1000;
    const sum = (index) => counts.reduce((total, each) => total + each[index], 0);
    return {
      perSecond: sum(0) / seconds,
      refused: sum(1),
      callsPerSecond: ((await callsOf(redis)) - before) / seconds,
    };
  });
}

async function measure(settings) {
  const world = await startWorld(define);
  try {
    const found = { latencies: await latencies(world, settings) };
    found.shift = await shift(world, settings);
    found.hot = await hot(world, settings);
    found.cut = await cut(world, settings);
    return found;
  } finally {
    await world.stop();
  }
}

function section({ latencies: { world, local, more }, shift: shifted, hot: flooded, cut: cutOff }, { chart, goalsOf }) {
  const series = REGIONS.map((name, region) => ({ name, points: shifted.series[region] }));
  const all = {
    name: 'nestjs-sluice, all regions',
    points: shifted.series[0].map(([at], bin) => [at, shifted.series.reduce((sum, own) => sum + own[bin][1], 0)]),
  };
  return [
    '## One limit over three regions',
    `Three regions with a process and a Redis each. Two of them are ${RTT_MS} ms away from the home that counts for all. A bucket refills ${REFILLED} units a second, ${ASKED} are asked for: 80, 15 and 5 % of them in the three regions, and 5, 15 and 80 % from ${shifted.turnS.toFixed(0)} s on.`,
    chart(
      'regions',
      lines('units used in each region', [all, ...series], {
        xName: 'seconds',
        yName: 'units/s',
        log: false,
        labels: false,
      }),
    ),
    table(
      ['', 'measured'],
      [
        ['a warm decision over regions, p50 and p99', `${micros(world.p50, 0)}, ${micros(world.p99, 0)}`],
        ['the same limit in one region, p50 and p99', `${micros(local.p50, 0)}, ${micros(local.p99, 0)}`],
        ['p99 beyond that, median of rounds', micros(more, 0)],
        ['used of the limit at 80/15/5', percent(shifted.before)],
        ['in the 2 s after the demand turned', percent(shifted.during)],
        ['from then on', percent(shifted.after)],
        [
          'one hot key in all regions',
          `${thousands(flooded.perSecond)}, ${flooded.callsPerSecond.toFixed(1)} calls of the home a second`,
        ],
        [
          `a region that is cut off for ${cutOff.cutMs / 1000} s`,
          `${whole(cutOff.allowed)} requests allowed, ${whole(cutOff.refused)} refused, ${whole(cutOff.failed)} denied without an answer; the longest waited ${cutOff.longestMs.toFixed(0)} ms`,
        ],
        ['units over the limit, in all of this', whole(shifted.over + cutOff.over)],
      ],
    ),
    ...goalsOf('regions'),
  ];
}

export const regions = { name: 'regions', measure, section };
