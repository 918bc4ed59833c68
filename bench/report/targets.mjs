/** What we want to reach, and whether we did: ratios within one run, of what users call. */

const OURS = 'nestjs-sluice';
const THROTTLER = '@nestjs/throttler on Redis';
const FLEXIBLE = 'rate-limiter-flexible on Redis';
const PEERS = [THROTTLER, FLEXIBLE];

const of = (results, name) => results.find((result) => result.name === name);
const ours = (results, field) => of(results, OURS)[field];
/** The better peer's: the most decisions, or the least time. */
const most = (results, field) => Math.max(...PEERS.map((name) => of(results, name)[field]));
const least = (results, field) => Math.min(...PEERS.map((name) => of(results, name)[field]));

const perSecond = 'perSecond';

/** What is wanted of each case of decisions, by its title. */
const OF_DECISIONS = {
  '10,000 keys, 256 in flight': (many) => [
    ['10,000 keys, 256 in flight, of the better peer', '>=', 4, ours(many, perSecond) / most(many, perSecond)],
    ['the same, of autopipelined INCR', '>=', 1.5, ours(many, perSecond) / of(many, 'INCR, autopipelined').perSecond],
    ['client CPU a decision, of the better peer', '<=', 0.2, ours(many, 'cpuMicros') / least(many, 'cpuMicros')],
  ],
  'one hot key, 256 in flight': (hot) => [
    ['one hot key, of the better peer', '>=', 8, ours(hot, perSecond) / most(hot, perSecond)],
    ['the same with a prefetch, million decisions/s', '>=', 2, of(hot, `${OURS} with a prefetch`).perSecond / 1e6],
  ],
  'three limits a request, 10,000 keys, 256 in flight': (three) => [
    ['three limits, of throttler', '>=', 5, ours(three, perSecond) / of(three, THROTTLER).perSecond],
  ],
  '10,000 keys, 1 in flight': (single) => [
    ['one in flight, p50 of the better peer', '<=', 1, ours(single, 'p50Micros') / least(single, 'p50Micros')],
    [
      'Redis CPU of a lone check, of rate-limiter-flexible',
      '<=',
      1.1,
      ours(single, 'serverCpuMicros') / of(single, FLEXIBLE).serverCpuMicros,
    ],
  ],
  '10,000 keys, 16 in flight': (some) => [
    ['16 in flight, of the better peer', '>=', 2, ours(some, perSecond) / most(some, perSecond)],
  ],
  'a flood of which 99 % is refused, 100 keys, 256 in flight': (flood) => [
    [
      'Redis CPU a check of a flood, of the better peer',
      '<=',
      0.1,
      ours(flood, 'serverCpuMicros') / least(flood, 'serverCpuMicros'),
    ],
  ],
  'in process, 10,000 keys': (local) => [
    [
      'in process, of rate-limiter-flexible',
      '>=',
      1.5,
      ours(local, perSecond) / of(local, 'rate-limiter-flexible in memory').perSecond,
    ],
  ],
};

function ofDecisions(cases) {
  return Object.entries(OF_DECISIONS).flatMap(([title, rowsOf]) => {
    const found = cases.find((each) => each.title === title);
    return found === undefined ? [] : rowsOf(found.results).map((row) => [title, ...row]);
  });
}

function ofRequests(http) {
  const app = (name) => http.find((each) => each.name === name);
  const unguarded = app('without a guard');
  const rows = [
    ['1 limit, Redis', 0.97, 7],
    ['3 limits, Redis', 0.94, 10],
    ['1 limit, in process', 0.97, 6],
    ['3 limits, in process', 0.95, 9],
  ];
  return rows.flatMap(([name, share, micros]) => {
    const title = `${OURS}, ${name}`;
    const guarded = app(title);
    const ratio = guarded.perSecond / unguarded.perSecond;
    return [
      [title, `requests/s of an app, ${name}, of the unguarded one`, '>=', share, ratio],
      [title, `µs of the app more a request, ${name}`, '<=', micros, guarded.cpuMicros - unguarded.cpuMicros],
    ];
  });
}

const ofMemory = ({ rows, logged }) => [
  ['', 'bytes a key of 20 bytes, at most', '<=', 130, Math.max(...rows.map(({ bytes }) => bytes))],
  ['', 'bytes a logged request, at most', '<=', 16, Number(logged)],
];

/** Nodes of a Cluster share nothing, so each more brings as much as the first one. */
function ofCluster(points) {
  const own = points.filter(({ name }) => name === OURS);
  const [first, ...others] = own;
  return others.map(({ masters, capacity }) => [
    '',
    `capacity of a Cluster of ${masters} masters, of one of ${first.masters}`,
    '>=',
    0.8 * masters,
    capacity / first.capacity,
  ]);
}

const GROUPS = { decisions: ofDecisions, requests: ofRequests, memory: ofMemory, 'growth:cluster': ofCluster };

/** @returns what is wanted of the cases that were timed; `of` is the title of the case or the row */
export function targets(results) {
  const rows = Object.entries(GROUPS).flatMap(([name, group]) =>
    results[name] === undefined ? [] : group(results[name]),
  );
  return rows.map(([title, what, sense, target, value]) => ({
    of: title,
    what,
    target: `${sense} ${Number(target.toFixed(2))}`,
    value,
    reached: sense === '<=' ? value <= target : value >= target,
  }));
}
