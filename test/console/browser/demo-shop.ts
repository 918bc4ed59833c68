import { type RateLimitModuleOptions, usd } from '../../../lib/index.js';
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
    member: { algo: 'fixed-window', rate: 400, interval: '10m', within: 'team' },
    team: { algo: 'fixed-window', rate: 600, interval: '10m', within: 'org', ceiling: 1_500 },
    org: { algo: 'fixed-window', rate: 6_000, interval: '10m', lends: 0.9 },
    renders: {
      algo: 'sliding-window',
      rate: 600,
      interval: '1m',
      key: 'global',
      share: { by: 'user', weight: { 'user:acme': 3 }, floor: 0.05 },
    },
    tokens: {
      algo: 'calendar-window',
      rate: 2_000_000,
      period: 'month',
      timezone: 'Europe/Berlin',
      anchor: '2026-01-31',
      rollover: 0.5,
      credits: true,
      unit: 'tokens',
      key: 'user',
    },
    money: { algo: 'budget', limit: usd(50), unit: 'USD', period: 'month', timezone: 'Europe/Berlin', key: 'user' },
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

/** One of so many, the first ones more often. */
function among(most: number): number {
  return Math.floor(most * Math.random() ** 2);
}

/** The clients of limits that are parts of others, that tenants share, or that are plans. */
async function letPartsAsk({ service }: ConsoleApp, turn: number): Promise<void> {
  const team = among(3);
  const within = { org: 'acme', team: `team-${team}` };
  await service.for('member').consume(`user:${10 * team + among(4)}`, { within });
  const tenant = ['acme', 'blue', 'coral'][among(3)]!;
  await service.for('renders').consume('global', { share: `user:${tenant}`, cost: 1 + among(3) });
  if (turn % 20 !== 0) return;
  await service.for('tokens').consume('user:40', 900 + among(4_000));
  await service.for('money').consume('user:40', usd('0.0125') * (1 + among(20)));
}

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
    await Promise.all([...asked, letPartsAsk(apps[turn % apps.length]!, turn)]);
    await new Promise((resolve) => setTimeout(resolve, start + (turn + 1) * EVERY_MS - performance.now()));
  }
}
