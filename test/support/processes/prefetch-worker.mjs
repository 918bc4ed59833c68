/**
 * One of several processes that share a limit with a `prefetch`, with the built package. It asks in bursts for as long as its
 * input says, and tells every 20 ms what was allowed since: a list of times, in milliseconds, before and after each.
 */
import { Redis } from 'ioredis';
import { prefetch as feature } from '../../../build/storage/features/prefetch/prefetch.js';
import { CompiledLimit } from '../../../build/engine/limits/compiled-limit.js';
import { createStoreStack } from '../../../build/nest/store-stack.js';
import { PATIENCE_MS } from '../redis/patience.mjs';

const FEWEST_BURSTS = 3;

const { url, prefix, options, prefetch, forMs } = JSON.parse(process.argv[2]);

const redis = new Redis(url, { lazyConnect: true, autoResendUnfulfilledCommands: false });
await redis.connect();
const store = await createStoreStack({ redis, prefix, timeoutMs: PATIENCE_MS, maxKeys: 1000, report: () => undefined });
await store.open();
const limit = new CompiledLimit(options, {
  location: 'worker',
  name: 'prefetched',
  features: [{ of: feature.of, terms: prefetch }],
});
const now = () => performance.timeOrigin + performance.now();

process.send({ ready: true });
await new Promise((resolve) => process.once('message', resolve));

let uses = [];
const tell = () => process.send({ uses: uses.splice(0) });
const timer = setInterval(tell, 20);
const end = now() + forMs;
const ask = async () => {
  const before = now();
  const [[decision]] = await store.check([{ entries: [{ limit, identity: 'global', cost: 1 }] }]);
  if (decision.allowed) uses.push([before, now()]);
};
// Bursts, with pauses in which units are held. Some are made however late the machine lets them begin.
for (let bursts = 0; bursts < FEWEST_BURSTS || now() < end; bursts++) {
  const burst = Math.ceil(Math.random() * 2 * prefetch.units);
  for (let asked = 0; asked < burst; asked++) await ask();
  await new Promise((resolve) => setTimeout(resolve, (Math.random() * prefetch.ttl) / 1000));
}
clearInterval(timer);
await store.close();
redis.disconnect();
tell();
process.disconnect();
