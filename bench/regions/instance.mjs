/** An instance of a region: `node instance.mjs <options of the module>`. Does one job after another, and sends what it found. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startApp } from '../contenders/ours.mjs';

const EVERY_MS = 5;
const KEY = 'user:1';

const { limiters } = await startApp({ ...JSON.parse(process.argv[2]), telemetry: false });
const now = () => performance.timeOrigin + performance.now();

const jobs = {
  /** Requests at a rate that changes: `phases` of `[milliseconds, requests a second]`. Replies each one's time, wait and outcome. */
  async demand({ limit, phases }) {
    const api = limiters.for(limit);
    const answers = [];
    const open = new Set();
    async function ask() {
      const at = now();
      const outcome = await api.consume(KEY).then(
        ({ allowed }) => (allowed ? 1 : 0),
        () => -1,
      );
      answers.push([at, now() - at, outcome]);
    }
    let last = now();
    let due = 0;
    for (const [ms, perSecond] of phases) {
      for (const end = last + ms; last < end;) {
        const at = now();
        due += ((at - last) / 1000) * perSecond;
        last = at;
        for (; due >= 1; due--) {
          const asked = ask().finally(() => open.delete(asked));
          open.add(asked);
        }
        await sleep(EVERY_MS);
      }
    }
    await Promise.all(open);
    return answers;
  },

  /** Decisions of one limit after another, one in flight. Replies the microseconds of each. */
  async latencies({ limits, count }) {
    const apis = limits.map((name) => limiters.for(name));
    const taken = limits.map(() => []);
    for (let i = 0; i < count; i++) {
      for (const [index, api] of apis.entries()) {
        const start = performance.now();
        await api.consume(KEY);
        taken[index].push((performance.now() - start) * 1000);
      }
      if (i % 10 === 0) await sleep(1);
    }
    return taken;
  },

  /** As many decisions as can be made with so many in flight. Replies how many were allowed, and how many not. */
  async flood({ limit, inFlight, ms }) {
    const api = limiters.for(limit);
    const counts = [0, 0];
    const end = now() + ms;
    const lane = async () => {
      while (now() < end) {
        const isAllowed = await api.consume(KEY).then(
          ({ allowed }) => allowed,
          () => false,
        );
        counts[isAllowed ? 0 : 1]++;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
    return counts;
  },
};

process.on('message', ({ job, ...input }) => void jobs[job](input).then((found) => process.send(found)));
process.on('disconnect', () => process.exit());
process.send('ready');
