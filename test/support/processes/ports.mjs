import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** A Cluster node listens on a second port, this much higher. */
export const CLUSTER_BUS_OFFSET = 10_000;

// Port and bus port both stay below the range from which systems give ports to outgoing connections (Linux: from 32768),
// or a client of another test could take a port between the moment it is picked and the moment a server listens on it.
const LOWEST = 10_000;
const HIGHEST = 22_000;

const given = new Set();

/** A port of 127.0.0.1 on which nobody listens, nor on the Cluster bus port that belongs to it. Never the same one twice. */
export async function freePort() {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = randomInt(LOWEST, HIGHEST);
    if (given.has(port)) continue;
    if ((await isFree(port)) && (await isFree(port + CLUSTER_BUS_OFFSET))) {
      given.add(port);
      return port;
    }
  }
  throw new Error(`No free port between ${LOWEST} and ${HIGHEST} on 127.0.0.1.`);
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
