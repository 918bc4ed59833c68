import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { bundledWorker } from '../support/processes/bundled-worker.js';
import { isLong, scenarioMs } from '../support/processes/chaos.js';
import { until } from '../support/time/until.js';
import { startRedis } from '../support/redis/redis-servers.js';
import { freshPrefix } from '../support/limits/stores.js';
import { TcpProxy } from '../support/redis/tcp-proxy.js';
import type { Use } from '../support/limits/uses.js';
import { WorldLimits } from '../support/redis/world-limits.js';
import { DELAY_MS } from '../support/redis/worlds.js';

const worker = bundledWorker('region-worker.mjs');
const all = new WorldLimits(400, 2000);
const FOR_MS = scenarioMs(6000);
/** The regions of the processes. */
const INSTANCES = ['eu', 'eu', 'us', 'us', 'ap'];

const cleanups: (() => unknown)[] = [];
beforeAll(ensureBuilt);
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** A server and its address, ended behind the test. */
async function server() {
  const started = await startRedis();
  cleanups.push(() => started.stop());
  return started;
}

it.each(isLong ? ['sliding-window', 'token-bucket', 'fixed-window'] : ['sliding-window'])(
  'instances of three regions never use more than a %s, though one of a region is killed',
  async (name) => {
    const home = await server();
    const [us, ap] = [await server(), await server()];
    const proxy = await TcpProxy.start(home, 0, DELAY_MS);
    cleanups.push(() => proxy.close());
    const urls: Record<string, string> = { eu: home.url, us: us.url, ap: ap.url };
    const input = { prefix: freshPrefix(), limit: all.limits[name], perSecond: 200 };
    const script = await worker();
    const uses: Use[] = [];
    const children = INSTANCES.map((region) => {
      const job = { ...input, region, url: urls[region], home: region === 'eu' ? home.url : proxy.url };
      const child = fork(script, [JSON.stringify(job)], {
        execArgv: [],
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      cleanups.push(() => end(child));
      return child;
    });
    await Promise.all(children.map((child) => once(child, 'message')));
    for (const child of children) {
      child.on('message', (message: { uses: Use[] }) => uses.push(...message.uses));
      child.send('go');
    }
    const ended = Promise.all([0, 3, 4].map((index) => once(children[index]!, 'close')));
    const anyUsed = (units: number) => until(() => uses.length > units);
    await Promise.all([sleep(FOR_MS / 2), anyUsed(all.rate / 2)]);
    // One that may hold an exchange which it has begun, in the region of the home and in another one.
    for (const index of [1, 2]) children[index]!.kill('SIGKILL');
    // More than one window, however busy the machine is.
    await Promise.all([sleep(FOR_MS / 2), anyUsed(all.rate)]);
    for (const index of [0, 3, 4]) children[index]!.send('stop');
    await ended;
    expect([0, 3, 4].map((index) => children[index]!.exitCode)).toEqual([0, 0, 0]);
    expect(
      all.over(
        name,
        uses.toSorted(([one], [other]) => one - other),
      ),
    ).toBe(0);
  },
);

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGKILL');
  await closed;
}
