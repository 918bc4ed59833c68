/** What we want to reach, and whether we did: ratios within one run. */

const OURS = 'nestjs-sluice';
const PEERS = ['@nestjs/throttler on Redis', 'rate-limiter-flexible on Redis'];

const find = (cases, part) => cases.find(({ title }) => title.includes(part)).results;
const of = (results, name) => results.find((result) => result.name === name);
const best = (results) => Math.max(...PEERS.map((name) => of(results, name).perSecond));

export function targets({ cases, http, memory }) {
  const many = find(cases, '256 in flight');
  const single = find(cases, ', 1 in flight');
  const hot = find(cases, 'hot key');
  const flood = find(cases, 'flood');
  const leastServerCpu = Math.min(...PEERS.map((name) => of(flood, name).serverCpuMicros));
  const three = find(cases, 'three limits');
  const local = find(cases, 'in process');
  const guarded = http.find(({ name }) => name === 'nestjs-sluice, 3 limits, Redis');
  const unguarded = http.find(({ name }) => name === 'without a guard');
  const leastCpu = Math.min(...PEERS.map((name) => of(many, name).cpuMicros));
  const rows = [
    ['10,000 keys, 256 in flight, of the better peer', '>=', 3.5, of(many, OURS).perSecond / best(many)],
    ['the same, of autopipelined INCR', '>=', 1, of(many, OURS).perSecond / of(many, 'INCR, autopipelined').perSecond],
    ['one hot key, of the better peer', '>=', 6, of(hot, OURS).perSecond / best(hot)],
    ['the same with a lease, million decisions/s', '>=', 2, of(hot, 'nestjs-sluice with a lease').perSecond / 1e6],
    [
      'Redis CPU a check of a flood, of the better peer',
      '<=',
      0.1,
      of(flood, 'nestjs-sluice, refusals remembered').serverCpuMicros / leastServerCpu,
    ],
    ['three limits, of throttler', '>=', 4, of(three, OURS).perSecond / of(three, PEERS[0]).perSecond],
    ['client CPU a decision, of the better peer', '<=', 0.25, of(many, OURS).cpuMicros / leastCpu],
    [
      'one in flight, p50 of a bare EVALSHA',
      '<=',
      1.1,
      of(single, OURS).p50Micros / of(single, "EVALSHA 'return 1'").p50Micros,
    ],
    [
      'in process, of rate-limiter-flexible',
      '>=',
      2,
      of(local, OURS).perSecond / of(local, 'rate-limiter-flexible in memory').perSecond,
    ],
    ['requests/s with three limits, of the unguarded app', '>=', 0.85, guarded.perSecond / unguarded.perSecond],
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
