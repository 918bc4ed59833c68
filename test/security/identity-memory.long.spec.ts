import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from '@jest/globals';
import { byIp } from '../../lib/app/key-resolvers/ip.js';
import { ProxyWarning } from '../../lib/app/key-resolvers/proxy-warning.js';

it('keeps no long header alive by an address that was cut out of it', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const identify = byIp(64, new ProxyWarning());
  const padding = 'x'.repeat(15_000);
  const look = (network: number, host: number) => {
    const header = Buffer.from(`${padding},203.0.${network}.${host}`).toString('latin1');
    return identify(undefined, { request: { ip: header.slice(padding.length + 1) } });
  };
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 2000; i++) look(100 + Math.floor(i / 100), 100 + (i % 100));
  collectGarbage();
  // The headers are 30 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
  expect(look(119, 199)).toBe('ip:203.0.119.199');
});
