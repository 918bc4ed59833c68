/** Three regions with a process and a Redis each, and their home, which is 80 ms away from two of them. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startRedisProcess } from '../../test/support/redis/redis-process.mjs';
import { startProxy } from './proxy.mjs';

export const REGIONS = ['eu', 'us', 'ap'];
export const RTT_MS = 80;

const INSTANCE = fileURLToPath(new URL('instance.mjs', import.meta.url));

/** @returns `home`, a server; `run(inputs)` does a job in each region at once; `proxies`, of each region; `stop()` */
export async function startWorld(define) {
  const cleanups = [];
  const stop = async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  };
  try {
    const home = await startRedisProcess();
    cleanups.push(() => home.stop());
    const children = [];
    const proxies = [];
    for (const [index, name] of REGIONS.entries()) {
      const server = await startRedisProcess();
      cleanups.push(() => server.stop());
      const proxy = await startProxy(home, index === 0 ? 0 : RTT_MS / 2);
      cleanups.push(() => proxy.close());
      proxies.push(proxy);
      const options = { redis: server.url, regions: { name, home: proxy.url }, define };
      const child = fork(INSTANCE, [JSON.stringify(options)], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
      cleanups.push(() => end(child));
      await once(child, 'message');
      children.push(child);
    }
    const run = (inputs) =>
      Promise.all(
        children.map(async (child, index) => {
          if (inputs[index] === undefined) return undefined;
          child.send(inputs[index]);
          return (await once(child, 'message'))[0];
        }),
      );
    return { home, proxies, run, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill();
  await exited;
}
