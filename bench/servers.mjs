/** The processor time and the memory of servers. */
import { Redis } from 'ioredis';

/** Calls with a connection that is for looking only. */
export async function looking(url, look) {
  const redis = new Redis(url);
  try {
    return await look(redis);
  } finally {
    redis.disconnect();
  }
}

/** The memory that a server's data take, with all that it keeps for them. */
export async function usedBytes(redis) {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))[1]);
}
