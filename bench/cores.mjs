/** Processors of their own for processes that would take turns on them, where the system can give them. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const SERVERS = ['redis-server', 'valkey-server'];
const ALL = `0-${availableParallelism() - 1}`;

/** Keeps a process on these processors, all by default. Says whether the system can do that. */
function keepOn(pid, processors = ALL) {
  try {
    execFileSync('taskset', ['-acp', processors, String(pid)], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The process of a server, if it is one of this machine. */
async function pidOf(redis) {
  const pid = /process_id:(\d+)/.exec(await redis.info('server'))[1];
  try {
    return SERVERS.includes(readFileSync(`/proc/${pid}/comm`, 'utf8').trim()) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Gives each of these processes the first processor, while this one and the server have the second.
 * @returns whether that is possible, and what ends it
 */
export async function keepApart(pids, redis) {
  const others = [process.pid, await pidOf(redis)].filter((pid) => pid !== undefined);
  const all = [...pids.map((pid) => [pid, '0']), ...others.map((pid) => [pid, '1'])];
  const isPossible = availableParallelism() > 1 && others.length === 2 && all.every(([pid, core]) => keepOn(pid, core));
  return { areApart: isPossible, end: () => others.forEach((pid) => keepOn(pid)) };
}
