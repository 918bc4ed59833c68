/**
 * What the package does, checked by a program of plain JavaScript that any runtime may run. It writes a line of JSON for each check,
 * then ends by itself: nothing of a closed app may keep the process.
 */
import 'reflect-metadata';
import { entryPoints } from './entry-points.mjs';
import { http } from './http.mjs';
import { limits } from './limits.mjs';
import { redis } from './redis.mjs';

/** Ends only what hangs. */
const TIMEOUT_MS = 60_000;

const checks = { ...entryPoints, ...limits, ...http('Express'), ...http('Fastify'), ...redis };

for (const [name, check] of Object.entries(checks)) {
  const error = await errorOf(check);
  console.log(JSON.stringify({ name, ...(error !== undefined && { error }) }));
}
console.log(JSON.stringify({ done: true }));

async function errorOf(check) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`did not end within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
  });
  try {
    await Promise.race([check(), timeout]);
    return undefined;
  } catch (error) {
    return error.stack ?? String(error);
  } finally {
    clearTimeout(timer);
  }
}
