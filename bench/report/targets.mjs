/** What we want to reach, and whether we did: ratios within one run, of what users call. */

const OURS = 'nestjs-sluice';
const THROTTLER = '@nestjs/throttler on Redis';
const FLEXIBLE = 'rate-limiter-flexible on Redis';
const PEERS = [THROTTLER, FLEXIBLE];

const find = (cases, part) => cases.find(({ title }) => title.includes(part)).results;
const of = (results, name) => results.find((result) => result.name === name);
const ours = (results, field) => of(results, OURS)[field];
/** The better peer's: the most decisions, or the least time. */
const most = (results, field) => Math.max(...PEERS.map((name) => of(results, name)[field]));
const least = (results, field) => Math.min(...PEERS.map((name) => of(results, name)[field]));

function decisionTargets(cases) {
  const many = find(cases, '256 in flight');
  const some = find(cases, ', 16 in flight');
  const single = find(cases, ', 1 in flight');
  const hot = find(cases, 'hot key');
  const flood = find(cases, 'flood');
  const three = find(cases, 'three limits');
  const local = find(cases, 'in process');
  const perSecond = 'perSecond';
  const increment = of(many, 'INCR, autopipelined').perSecond;
  const inMemory = of(local, 'rate-limiter-flexible in memory').perSecond;
  return [
    ['10,000 keys, 256 in flight, of the better peer', '>=', 4, ours(many, perSecond) / most(many, perSecond)],
    ['the same, of autopipelined INCR', '>=', 1.5, ours(many, perSecond) / increment],
    ['one hot key, of the better peer', '>=', 8, ours(hot, perSecond) / most(hot, perSecond)],
    ['the same with a prefetch, million decisions/s', '>=', 2, of(hot, `${OURS} with a prefetch`).perSecond / 1e6],
    ['three limits, of throttler', '>=', 5, ours(three, perSecond) / of(three, THROTTLER).perSecond],
    ['client CPU a decision, of the better peer', '<=', 0.2, ours(many, 'cpuMicros') / least(many, 'cpuMicros')],
    ['one in flight, p50 of the better peer', '<=', 1, ours(single, 'p50Micros') / least(single, 'p50Micros')],
    ['16 in flight, of the better peer', '>=', 2, ours(some, perSecond) / most(some, perSecond)],
    [
      'Redis CPU of a lone check, of rate-limiter-flexible',
      '<=',
      1.1,
      ours(single, 'serverCpuMicros') / of(single, FLEXIBLE).serverCpuMicros,
    ],
    [
      'Redis CPU a check of a flood, of the better peer',
      '<=',
      0.1,
      ours(flood, 'serverCpuMicros') / least(flood, 'serverCpuMicros'),
    ],
    ['in process, of rate-limiter-flexible', '>=', 1.5, ours(local, perSecond) / inMemory],
  ];
}

function requestTargets(http) {
  const app = (name) => http.find((each) => each.name === name);
  const unguarded = app('without a guard');
  const rows = [
    ['1 limit, Redis', 0.97, 7],
    ['3 limits, Redis', 0.94, 10],
    ['1 limit, in process', 0.97, 6],
    ['3 limits, in process', 0.95, 9],
  ];
  return rows.flatMap(([name, share, micros]) => {
    const guarded = app(`${OURS}, ${name}`);
    return [
      [`requests/s of an app, ${name}, of the unguarded one`, '>=', share, guarded.perSecond / unguarded.perSecond],
      [`µs of the app more a request, ${name}`, '<=', micros, guarded.cpuMicros - unguarded.cpuMicros],
    ];
  });
}

export function targets({ cases, http, memory }) {
  const rows = [
    ...decisionTargets(cases),
    ...requestTargets(http),
    ['bytes a key of 20 bytes, at most', '<=', 130, Math.max(...memory.rows.map(({ bytes }) => bytes))],
    ['bytes a logged request, at most', '<=', 16, Number(memory.logged)],
  ];
  return rows.map(([what, sense, target, value]) => ({
    what,
    target: `${sense} ${target}`,
    value,
    reached: sense === '<=' ? value <= target : value >= target,
  }));
}
