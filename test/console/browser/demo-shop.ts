import type { RateLimitModuleOptions } from '../../../lib/index.js';
import type { ConsoleApp } from '../console-app.js';

/** The limits of an app to take pictures of. */
export const SHOP: RateLimitModuleOptions = {
  define: {
    api: { algo: 'gcra', rate: 20, interval: '1s', burst: 40, key: 'ip' },
    search: { algo: 'sliding-window', rate: 300, interval: '1m', key: 'user', candidate: { rate: 240 } },
    login: { algo: 'sliding-log', rate: 5, interval: '15m', key: 'ip' },
    checkout: { algo: 'token-bucket', rate: 30, interval: '10s', burst: 60, key: 'user' },
    partners: { algo: 'fixed-window', rate: 900, interval: '1m', key: 'header:x-partner', mode: 'shadow' },
    exports: { algo: 'leaky-bucket', rate: 2, interval: '1s', queue: 20, key: 'user' },
  },
};

const EVERY_MS = 100;

/** How many units a second each limit is asked for, on the average, and by how many keys. */
const ASKED: readonly (readonly [limit: string, aSecond: number, keys: number, identity: string])[] = [
  ['api', 64, 6, 'ip:203.0.113.'],
  ['search', 26, 5, 'user:'],
  ['login', 1.4, 40, 'ip:198.51.100.'],
  ['checkout', 9, 4, 'user:'],
  ['partners', 24, 2, 'partner:'],
  ['exports', 2.2, 3, 'user:'],
];

/** Lets clients ask all instances for a while: busy and calm by turns, some of them much more than others. */
export async function letClientsAsk(apps: readonly ConsoleApp[], forMs: number, isOver: () => boolean): Promise<void> {
  const start = performance.now();
  const owed = ASKED.map(() => 0);
  for (let turn = 0; performance.now() - start < forMs && !isOver(); turn++) {
    const time = (performance.now() - start) / 1_000;
    const asked = ASKED.flatMap(([limit, aSecond, keys, identity], index) => {
      const tide = 1 + 0.45 * Math.sin(time / 37 + index) + 0.2 * Math.sin(time / 7 + 2 * index);
      owed[index]! += (aSecond * EVERY_MS * tide * (0.6 + 0.8 * Math.random())) / 1_000;
      const count = Math.floor(owed[index]!);
      owed[index]! -= count;
      return Array.from({ length: count }, () => {
        const key = `${identity}${40 + Math.floor(keys * Math.random() ** 2.2)}`;
        return apps[turn % apps.length]!.service.for(limit).consume(key);
      });
    });
    await Promise.all(asked);
    await new Promise((resolve) => setTimeout(resolve, start + (turn + 1) * EVERY_MS - performance.now()));
  }
}
