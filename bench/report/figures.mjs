/** The five figures that the page begins with: what an app gets, beside a peer of the same run. */
import { micros, table, thousands } from './format.mjs';

const OURS = 'nestjs-sluice';
/** With the algorithm of the peers. */
const FIXED = `${OURS}, fixed windows`;
const THROTTLER = '@nestjs/throttler';
const FLEXIBLE = 'rate-limiter-flexible on Redis';
const named = (results, name) => results.find((each) => each.name === name);

function ofApp(apps) {
  const load = (name) => named(apps, name).loads.find(({ connections }) => connections === 8);
  const [own, theirs] = [load(OURS), load(THROTTLER)];
  const row = (what, field) => [what, micros(own[field]), micros(theirs[field]), THROTTLER, own[field] / theirs[field]];
  return [
    row('An app with 20 routes and two limits, 8 connections: Redis CPU a request', 'serverCpuMicros'),
    row('Its own CPU a request, beyond the app without limits', 'beyondMicros'),
  ];
}

function ofMixed(cases) {
  const found = cases.find(({ inFlight }) => inFlight === 16);
  if (found === undefined) return [];
  const [own, theirs] = [FIXED, FLEXIBLE].map((name) => named(found.results, name).perSecond);
  return [['20 different limits, 16 in flight: decisions', thousands(own), thousands(theirs), FLEXIBLE, own / theirs]];
}

function ofFleet(fleets) {
  const all = fleets.filter(({ limits }) => limits === 20);
  const [own, gathering, theirs] = [FIXED, `${FIXED}, with gather`, FLEXIBLE].map((name) => named(all, name).carried);
  const text = `${thousands(own)}; with \`gather\` ${thousands(gathering)}`;
  return [
    [
      `${all[0].count} processes, 20 limits: decisions that one Redis core carries`,
      text,
      thousands(theirs),
      FLEXIBLE,
      own / theirs,
    ],
  ];
}

function ofImport(rows) {
  const peer = '@nestjs/throttler with its Redis storage';
  const [own, theirs] = [OURS, peer].map((name) => named(rows, name).cpuMs);
  return [['Import after Nest: CPU', `${own.toFixed(0)} ms`, `${theirs.toFixed(0)} ms`, peer, own / theirs]];
}

const GROUPS = { app: ofApp, mixed: ofMixed, fleet: ofFleet, import: ofImport };

/** A table of the figures of the cases that were timed, if there are any. */
export function figures(results) {
  const rows = Object.entries(GROUPS).flatMap(([name, group]) =>
    results[name] === undefined ? [] : group(results[name]),
  );
  if (rows.length === 0) return '';
  const head = ['', OURS, 'a peer', 'which', 'ours of it'];
  return table(
    head,
    rows.map(([what, own, theirs, peer, ratio]) => [what, own, theirs, peer, `${ratio.toFixed(2)} x`]),
  );
}
