import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { RatesApp } from '../app/overrides/overrides-app.js';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';
import { withOwnRedis } from '../support/redis/own-redis.js';
import { ensurePython } from '../support/processes/python-binary.mjs';
import { RedisShell } from '../support/redis/redis-shell.js';
import { until } from '../support/time/until.js';

const page = readFileSync(join(PACKAGE_FOLDER, 'docs/guides/other-languages.md'), 'utf8');
const blocks = (language: string) => [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))];
const [[, lines = ''] = []] = blocks('text');
const [[, call = ''] = [], [, save = ''] = []] = blocks('sh');
const [[, program = ''] = []] = blocks('python');

/** The hash changes with each change of the script. */
const withoutHash = (text: string) => text.replaceAll(/\b[0-9a-f]{40}\b/g, '<hash>');
const numbers = (output: string) => output.trim().split('\n').slice(1).map(Number);

let redis: Redis;
let url = '';
let shell: RedisShell;
let app: RatesApp;
withOwnRedis((client, server) => {
  redis = client;
  url = server.url;
});
beforeAll(async () => {
  await ensureBuilt();
  shell = await RedisShell.open(Number(new URL(url).port));
  const define = { api: { algo: 'gcra', rate: 60, interval: '1m' } } as const;
  app = await RatesApp.start({ redis: url, define });
}, 120_000);
afterAll(async () => {
  await app?.close();
  await shell?.close();
});

describe('the guide to counters shared with other languages', () => {
  it('shows what the program prints', async () => {
    expect(withoutHash(await shell.run(call))).toBe(withoutHash(lines));
  });

  it('counts by hand on the counter of the app', async () => {
    const current = await shell.run(call);
    const [first, left] = numbers(await shell.run(current));
    expect([first, left]).toEqual([4001, 59]);
    await app.service.for('api').consume('tenant:acme', 9);
    const [, rest] = numbers(await shell.run(current));
    expect(rest).toBeGreaterThanOrEqual(49);
    expect(rest).toBeLessThan(59);
  });

  it('counts in Python on the counter of the app, even after Redis has lost the script', async () => {
    await shell.run(save);
    const run = program.replace('redis://localhost:6379', url).replace('socket_timeout=0.25', 'socket_timeout=5');
    const asks = 'import json\nprint(json.dumps([take("globex", 50), take("globex", 50)]))\n';
    writeFileSync(join(shell.folder, 'take.py'), `${run}\n${asks}`);
    await redis.script('FLUSH');
    const { stdout } = await promisify(execFile)(ensurePython(), ['take.py'], { cwd: shell.folder });
    const [taken, refused] = JSON.parse(stdout) as [boolean, number, number][];
    expect(taken!.slice(0, 2)).toEqual([true, 10]);
    expect(refused![0]).toBe(false);
    expect(refused![2]).toBeGreaterThan(35);
    expect(refused![2]).toBeLessThanOrEqual(40);
    const { remaining } = await app.service.for('api').peek('tenant:globex');
    expect(remaining).toBeGreaterThanOrEqual(10);
    expect(remaining).toBeLessThan(60);
  }, 120_000);

  it('says what a script that runs too long does to limits', async () => {
    const api = app.service.for('api');
    await redis.config('SET', 'busy-reply-threshold', '10');
    const endless = new Redis(url);
    const ended = endless.eval('while true do end', 0).catch((error: Error) => error);
    await until(async () => (await redis.ping().catch((error: Error) => error.message)).startsWith('BUSY'), 20_000);
    expect(await api.consume('tenant:initech')).toMatchObject({ allowed: true, source: 'fallback' });
    await redis.script('KILL');
    expect(await ended).toMatchObject({ message: expect.stringContaining('killed') });
    endless.disconnect();
    await until(async () => (await api.peek('tenant:initech')).source === 'redis', 20_000);
  });
});
