/** What is told of a run. */

const percent = (part) => `${(100 * part).toFixed(1)} %`;

/** The numbers of a run, and how they compare with what the rates allow. */
export function summaryOf(run, { jobs, limit }) {
  const times = [...timesByTenant(run.starts).values()];
  const startsOf = new Map();
  for (const [, id] of run.starts) startsOf.set(id, (startsOf.get(id) ?? 0) + 1);
  const ended = (run.counts.completed ?? 0) + (run.counts.failed ?? 0);
  const left = jobs - ended;
  // A tenant that still has jobs could have used its rate until the end.
  const possible = times.reduce((sum, each) => sum + allowedIn(limit, until(each, run, left) - run.beganMicros), 0);
  const lost = jobs - Object.values(run.counts).reduce((sum, count) => sum + count, 0);
  return {
    seconds: (Math.max(...times.map((each) => each.at(-1))) - run.beganMicros) / 1e6,
    left,
    lost,
    failed: run.counts.failed ?? 0,
    startedTwice: [...startsOf.values()].filter((count) => count > 1).length,
    delaysPerJob: run.delays.reduce((sum, count) => sum + count, 0) / jobs,
    mostDelays: Math.max(0, ...run.delays),
    mostInAnInterval: Math.max(...times.map((each) => mostWithin(each, limit.interval * 1000))),
    allowedInAnInterval: allowedIn(limit, limit.interval * 1000),
    mostAhead: Math.max(...times.map((each) => mostAhead(each, limit))),
    idle: Math.max(0, 1 - run.starts.length / possible),
    callsPerJob: run.calls / ended,
    redisMicrosPerJob: run.serverMicros / ended,
    workerMicrosPerJob: run.cpuMicros / ended,
  };
}

/** Times of one server, which recorded them in their order. */
function timesByTenant(starts) {
  const times = new Map();
  for (const [micros, , tenant] of starts) {
    if (times.has(tenant)) times.get(tenant).push(micros);
    else times.set(tenant, [micros]);
  }
  return times;
}

const until = (times, { endedMicros }, left) => (left > 0 ? endedMicros : times.at(-1));

/** The most units in a stretch, its ends included: the burst, and what comes back meanwhile. */
const allowedIn = ({ rate, interval, burst }, micros) => burst + Math.floor((rate * micros) / (interval * 1000));

/** The most starts in any stretch of so many microseconds. */
function mostWithin(times, micros) {
  let most = 0;
  let first = 0;
  for (let last = 0; last < times.length; last++) {
    while (times[last] - times[first] >= micros) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** By how many milliseconds a start came at most before the limit would have let it go, in any stretch. */
function mostAhead(times, { rate, interval, burst }) {
  const unit = (interval * 1000) / rate;
  let arrival = -Infinity;
  let most = 0;
  for (const time of times) {
    arrival = Math.max(arrival, time) + unit;
    most = Math.max(most, arrival - burst * unit - time);
  }
  return most / 1000;
}

const columns = {
  contender: ({ contender }) => contender,
  s: ({ seconds }) => seconds.toFixed(1),
  'not done': ({ left }) => left,
  lost: ({ lost }) => lost,
  failed: ({ failed }) => failed,
  'started twice': ({ startedTwice }) => startedTwice,
  'delays a job': ({ delaysPerJob, mostDelays }) => `${delaysPerJob.toFixed(2)}, at most ${mostDelays}`,
  'most in an interval': ({ mostInAnInterval, allowedInAnInterval }) => `${mostInAnInterval} of ${allowedInAnInterval}`,
  'ahead of the rate by': ({ mostAhead: ms }) => `${ms.toFixed(1)} ms`,
  idle: ({ idle }) => percent(idle),
  'Redis calls a job': ({ callsPerJob }) => callsPerJob.toFixed(1),
  'Redis CPU a job': ({ redisMicrosPerJob }) => `${redisMicrosPerJob.toFixed(0)} µs`,
  'worker CPU a job': ({ workerMicrosPerJob }) => `${workerMicrosPerJob.toFixed(0)} µs`,
};

const line = (cells) => `| ${cells.join(' | ')} |`;

/** The rows as a table of Markdown. */
export function table(rows) {
  const names = Object.keys(columns);
  return [
    line(names),
    line(names.map(() => '---')),
    ...rows.map((row) => line(names.map((name) => columns[name](row)))),
  ].join('\n');
}
