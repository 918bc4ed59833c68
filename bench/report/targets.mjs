/** What we want to reach, and whether we did: ratios within one run, of what users call. */

const OURS = 'nestjs-sluice';
/** With the algorithm of the peers. */
const FIXED = `${OURS}, fixed windows`;
const THROTTLER = '@nestjs/throttler on Redis';
const FLEXIBLE = 'rate-limiter-flexible on Redis';
const PEERS = [THROTTLER, FLEXIBLE];
const THROTTLED = '@nestjs/throttler';

const of = (results, name) => results.find((result) => result.name === name);
const ours = (results, field) => of(results, OURS)[field];
/** Ours, of a peer's. */
const ratio = (results, field, peer, own = OURS) => of(results, own)[field] / of(results, peer)[field];
/** The better peer's: the most decisions, or the least time. */
const most = (results, field) => Math.max(...PEERS.map((name) => of(results, name)[field]));
const least = (results, field) => Math.min(...PEERS.map((name) => of(results, name)[field]));

const perSecond = 'perSecond';
const serverCpuMicros = 'serverCpuMicros';

/** What is wanted of each case of decisions, by its title. */
const OF_DECISIONS = {
  '10,000 keys, 256 in flight': (many) => [
    ['10,000 keys, 256 in flight, of the better peer', '>=', 3.5, ours(many, perSecond) / most(many, perSecond)],
    ['the same, of autopipelined INCR', '>=', 1.5, ratio(many, perSecond, 'INCR, autopipelined')],
    ['client CPU a decision, of the better peer', '<=', 0.3, ours(many, 'cpuMicros') / least(many, 'cpuMicros')],
  ],
  'one hot key, 256 in flight': (hot) => [
    ['one hot key, of the better peer', '>=', 6, ours(hot, perSecond) / most(hot, perSecond)],
    ['the same with a prefetch, million decisions/s', '>=', 2, of(hot, `${OURS} with a prefetch`).perSecond / 1e6],
  ],
  'three limits a request, 10,000 keys, 256 in flight': (three) => [
    ['three limits, of the better peer', '>=', 4, ours(three, perSecond) / most(three, perSecond)],
  ],
  '10,000 keys, 1 in flight': (single) => [
    ['one in flight, p50 of the better peer', '<=', 1, ours(single, 'p50Micros') / least(single, 'p50Micros')],
    ['Redis CPU of a lone check, of rate-limiter-flexible', '<=', 1.15, ratio(single, serverCpuMicros, FLEXIBLE)],
  ],
  '10,000 keys, 16 in flight': (some) => [
    ['one limit, 16 in flight, of the better peer', '>=', 2, ours(some, perSecond) / most(some, perSecond)],
  ],
  'a flood of which 99 % is refused, 100 keys, 256 in flight': (flood) => [
    [
      'Redis CPU a check of a flood, of the better peer',
      '<=',
      0.1,
      ours(flood, serverCpuMicros) / least(flood, serverCpuMicros),
    ],
  ],
};

function ofDecisions(cases) {
  return Object.entries(OF_DECISIONS).flatMap(([title, rowsOf]) => {
    const found = cases.find((each) => each.title === title);
    return found === undefined ? [] : rowsOf(found.results).map((row) => [title, ...row]);
  });
}

/** By checks in flight: the rate, and the Redis CPU. */
const OF_MIXED = { 4: [1, 0.9], 16: [1.3, 0.75], 64: [2, 0.7] };

const ofMixed = (cases) =>
  cases.flatMap(({ title, inFlight, results }) => {
    const [rate, cpu] = OF_MIXED[inFlight] ?? [];
    if (rate === undefined) return [];
    return [
      [title, `${title}, of rate-limiter-flexible`, '>=', rate, ratio(results, perSecond, FLEXIBLE, FIXED)],
      [
        title,
        `Redis CPU of ${title}, of rate-limiter-flexible`,
        '<=',
        cpu,
        ratio(results, serverCpuMicros, FLEXIBLE, FIXED),
      ],
    ];
  });

/** By connections: the Redis CPU, and the CPU of the app beyond that of the unguarded one. */
const OF_APP = { 8: [0.75, 0.7], 64: [0.4, 0.25] };

function ofApp(apps) {
  const [own, theirs] = [OURS, THROTTLED].map((name) => of(apps, name).loads);
  return own.flatMap(({ connections }, index) => {
    const [redis, beyond] = OF_APP[connections] ?? [];
    if (redis === undefined) return [];
    const value = (field) => own[index][field] / theirs[index][field];
    const at = `${connections} connections`;
    return [
      [OURS, `Redis CPU of an app with 2 limits, ${at}, of throttler`, '<=', redis, value(serverCpuMicros)],
      [OURS, `its CPU beyond the unguarded app, ${at}, of throttler`, '<=', beyond, value('beyondMicros')],
    ];
  });
}

/** By limits: without `gather`; with it. */
const OF_FLEETS = { 1: [1.3, 2.5], 20: [1.1, 2.5] };

const ofFleets = (fleets) =>
  Object.entries(OF_FLEETS).flatMap(([limits, [usual, gathering]]) => {
    const fleet = fleets.filter((each) => each.limits === Number(limits));
    const value = (name) => of(fleet, name).carried / of(fleet, FLEXIBLE).carried;
    const what = `what one Redis core carries of a fleet, ${limits === '1' ? 'one limit' : `${limits} limits`}`;
    return [
      ['', `${what}, of rate-limiter-flexible`, '>=', usual, value(FIXED)],
      ['', `${what}, with \`gather\``, '>=', gathering, value(`${FIXED}, with gather`)],
    ];
  });

function ofInProcess({ one, several }) {
  const title = 'one limit in process';
  const peer = of(one, 'rate-limiter-flexible in memory').perSecond;
  const costOf = (limits) =>
    of(
      several.filter((each) => each.limits === limits),
      `${OURS}, check`,
    ).cpuMicros;
  return [
    [title, 'in process, of rate-limiter-flexible', '>=', 1, ours(one, perSecond) / peer],
    [title, 'the same by `consumeSync`', '>=', 1.6, of(one, `${OURS}, consumeSync`).perSecond / peer],
    [title, '10 limits a check in process, of one', '<=', 8, costOf(10) / costOf(1)],
  ];
}

/** Processes of one app on Express differ by more than is wanted. */
const ofRequests = (scatters) => (apps) => {
  const title = `${OURS}, 3 limits, in process`;
  const [unguarded, guarded] = ['without a guard', title].map((name) => of(apps, name));
  return [
    [
      title,
      'requests/s of an app, 3 limits, in process, of the unguarded one',
      '>=',
      0.93,
      guarded.perSecond / unguarded.perSecond,
      scatters,
    ],
    [
      title,
      'µs of the app more a request, 3 limits, in process',
      '<=',
      12,
      guarded.cpuMicros - unguarded.cpuMicros,
      scatters,
    ],
  ];
};

const STORED = '@nestjs/throttler with its Redis storage';

function ofImport(rows) {
  const { cpuMs, mb } = of(rows, OURS);
  return [
    ['', 'import, ms of CPU', '<=', 60, cpuMs],
    ['', 'the same, of throttler with its Redis storage', '<=', 3, cpuMs / of(rows, STORED).cpuMs],
    ['', 'import, MB', '<=', 8, mb],
  ];
}

function ofInstall({ rows, tarballBytes }) {
  const { bytes, files, dependencyBytes } = of(rows, OURS);
  return [
    ['', 'installed, MB', '<=', 4, bytes / 1e6],
    ['', 'installed, files', '<=', 400, files],
    ['', 'dependencies, MB', '<=', 2, dependencyBytes / 1e6],
    ['', 'tarball, MB', '<=', 0.9, tarballBytes / 1e6],
  ];
}

/** Three times what the peer takes, or 120 ms if that is more. */
function ofStartUp(rows) {
  const { cpuMs, mb } = of(rows, OURS).beyond;
  const wanted = Math.max(120, 3 * of(rows, THROTTLED).beyond.cpuMs);
  return [
    ['', 'start of 1,000 routes, ms of CPU beyond the plain app', '<=', wanted, cpuMs],
    ['', 'the same, MB', '<=', 8, mb],
  ];
}

const ofSecondInstance = ([none, ...others]) =>
  others.map(({ name, ms }) => ['', `ms that an instance starts later with ${name}`, '<=', 300, ms - none.ms]);

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

const ofRegions = ({ latencies, shift, hot, cut }) => [
  ['', 'a warm decision over regions, ms of p99 more than in one', '<=', 1, latencies.more / 1000],
  ['', 'used of a limit over regions at 80/15/5', '>=', 0.95, shift.before],
  ['', 'the same from 2 s after it turned', '>=', 0.95, shift.after],
  ['', 'calls of the home a second for one hot key', '<=', 50, hot.callsPerSecond],
  ['', 'ms that a request waits in a region that is cut off', '<=', 250, cut.longestMs],
  ['', 'units over a limit over regions', '<=', 0, shift.over + cut.over],
];

const GROUPS = {
  app: ofApp,
  mixed: ofMixed,
  fleet: ofFleets,
  regions: ofRegions,
  'in-process': ofInProcess,
  import: ofImport,
  install: ofInstall,
  'start-up': ofStartUp,
  'second-instance': ofSecondInstance,
  decisions: ofDecisions,
  requests: ofRequests(true),
  'requests:fastify': ofRequests(false),
  memory: ofMemory,
  'growth:cluster': ofCluster,
};

/** @returns what is wanted of the cases that were timed; `of` is the title of the case or the row */
export function targets(results) {
  const rows = Object.entries(GROUPS).flatMap(([name, group]) =>
    results[name] === undefined ? [] : group(results[name]).map((row) => [name, ...row]),
  );
  return rows.map(([name, title, what, sense, target, value, scatters = false]) => ({
    case: name,
    of: title,
    what,
    target: `${sense} ${Number(target.toFixed(2))}`,
    value,
    reached: sense === '<=' ? value <= target : value >= target,
    scatters,
  }));
}
