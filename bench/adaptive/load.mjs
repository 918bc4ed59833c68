/**
 * Sends requests at random moments, so many a second, whether earlier ones are answered or not, as another process. Tells how
 * many were answered with 200 in time, and how long those took, from the moment at which they were to be sent.
 */
import { Agent, get } from 'node:http';

const { port, path, rate, seconds, warmUpSeconds, timeoutMs, shares } = JSON.parse(process.argv[2]);
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });

const counted = Object.fromEntries(
  Object.keys(shares).map((rank) => [rank, { sent: 0, shed: 0, late: 0, latencies: [] }]),
);

function rankOf() {
  let drawn = Math.random();
  for (const [rank, share] of Object.entries(shares)) if ((drawn -= share) < 0) return rank;
  return Object.keys(shares)[0];
}

function send(dueAt, counts) {
  const rank = rankOf();
  const seen = counts ? counted[rank] : { sent: 0, shed: 0, late: 0, latencies: [] };
  seen.sent++;
  return new Promise((resolve) => {
    const request = get({ agent, port, host: '127.0.0.1', path, headers: { 'x-priority': rank } }, (response) => {
      response.resume();
      response.once('close', () => {
        clearTimeout(timer);
        if (response.statusCode === 200 && response.complete) seen.latencies.push(performance.now() - dueAt);
        else if (response.complete) seen.shed++;
        resolve();
      });
    });
    // A caller waits so long, and then goes away.
    const timer = setTimeout(() => {
      seen.late++;
      request.destroy();
      resolve();
    }, timeoutMs);
    request.once('error', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

const start = performance.now();
const countsFrom = start + warmUpSeconds * 1000;
const end = countsFrom + seconds * 1000;
const pending = [];
let dueAt = start;
while (dueAt < end) {
  dueAt -= (Math.log(1 - Math.random()) * 1000) / rate;
  const wait = dueAt - performance.now();
  if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
  pending.push(send(dueAt, dueAt >= countsFrom));
}
await Promise.all(pending);
process.send({ counted }, () => process.exit());
