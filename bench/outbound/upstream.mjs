/**
 * An API of others, as a process: it allows so many calls in each window to all of its consumers together, and says in each answer how
 * many are left. Another consumer, that nobody knows of, takes its share. The parent asks for what was counted.
 */
import { createServer } from 'node:http';

const { quota, windowMs, latencyMs, otherShare, atOnce, tells, phaseMs } = JSON.parse(process.argv[2]);

let used = 0;
let other = 0;
let windowEnd = phaseMs === undefined ? 0 : windowMs * Math.ceil(Date.now() / windowMs) + phaseMs;
let total = { allowed: 0, refused: 0, possible: 0, order: 0 };
/** The last number of each client that was let through. */
let last = new Map();

/** All of it is forgotten at the end of a window; what the app could have had in it is known then. */
function turnWindow(now) {
  if (now < windowEnd) return;
  if (windowEnd > 0) total.possible += quota - other;
  // Windows in which nobody asked are over, too.
  windowEnd += windowEnd === 0 ? now + windowMs : windowMs * Math.ceil((now - windowEnd + 1) / windowMs);
  used = other = 0;
}

/** The other consumer asks in bursts, for its share of each window in the end. */
setInterval(() => {
  turnWindow(Date.now());
  const burst = Math.round((2 * Math.random() * quota * otherShare) / (windowMs / 250));
  for (let call = 0; call < burst && used < quota; call++) {
    used++;
    other++;
  }
}, 250);

const server = createServer((request, response) => {
  request.resume();
  // It is counted when it arrives, and answered a while later.
  setTimeout(
    () => {
      turnWindow(Date.now());
      const isAllowed = used < quota;
      if (isAllowed) used++;
      const seconds = Math.ceil((windowEnd - Date.now()) / 1000);
      const [client, number] = (request.headers['x-call'] ?? '').split(':');
      if (isAllowed) {
        total.allowed++;
        // Those that are on their way together may arrive in any order.
        if (Number(number) < (last.get(client) ?? 0) - atOnce) total.order++;
        last.set(client, Math.max(Number(number), last.get(client) ?? 0));
      } else total.refused++;
      const headers = {
        ...(tells === 'all' && {
          RateLimit: `"default";r=${quota - used};t=${seconds}`,
          'RateLimit-Policy': `"default";q=${quota};w=${windowMs / 1000}`,
        }),
        ...(tells !== 'nothing' && !isAllowed && { 'Retry-After': String(seconds) }),
      };
      setTimeout(() => response.writeHead(isAllowed ? 200 : 429, headers).end('ok'), (latencyMs * Math.random()) / 2);
    },
    latencyMs / 2 + (latencyMs * Math.random()) / 2,
  );
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));

process.on('message', (message) => {
  turnWindow(Date.now());
  if (message === 'begin') {
    total = { allowed: 0, refused: 0, possible: 0, order: 0 };
    last = new Map();
    process.send({ begun: true, windowEnd });
  }
  if (message === 'end') process.send({ total });
});
