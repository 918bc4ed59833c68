/** Holds all of a concurrency limit, renews its lease as an app does, and says so until it is killed. */
import { Redis } from 'ioredis';
import { CompiledLimit } from '../../dist/algorithms/limit.js';
import { RedisStore } from '../../dist/stores/redis.store.js';

const { url, prefix, options } = JSON.parse(process.argv[2]);
const store = new RedisStore(new Redis(url, { lazyConnect: true }), { prefix, timeoutMs: 10_000 });
const limit = new CompiledLimit(options, { place: 'worker', name: 'shared' });
await store.open();
const entry = { limit, identity: 'global', cost: limit.quota };
const [[{ place }]] = await store.check([{ entries: [entry] }]);
setInterval(() => void store.renew({ limit, identity: 'global', units: limit.quota, place }), options.ttl / 3);
process.send('holding');
