import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

beforeAll(ensureBuilt);

/** Makes a process one where ioredis is not installed. */
const HOOKS = `
import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(\`
  export async function resolve(specifier, context, next) {
    if (specifier === 'ioredis') throw new Error('Cannot find package ioredis');
    return next(specifier, context);
  }
\`));
`;

const APP = `
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from 'nestjs-sluice';
import { createClient } from 'redis';

const url = process.env.TEST_REDIS_URL;
const start = async (redis) => {
  const module = RateLimitModule.forRoot({ redis, prefix: 'without-ioredis', timeout: '5s' });
  return NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
};
const client = await createClient({ url }).connect();
const app = await start(client);
const { source } = await app.get(LimiterService).for({ name: 'x', algo: 'gcra', rate: 5, interval: '1s' }).consume('a');
await app.close();
await client.close();
const refused = await start(url).catch((error) => error.message);
console.log(JSON.stringify({ source, refused }));
`;

const asModule = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;

it('an app counts on node-redis where ioredis is not installed, and is told what a URL needs', async () => {
  const args = ['--import', asModule(HOOKS), '--input-type=module', '--eval', APP];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: PACKAGE_FOLDER });
  expect(JSON.parse(stdout)).toEqual({
    source: 'redis',
    refused:
      "redis: the package 'ioredis' could not be loaded. Install it next to nestjs-sluice, or pass a node-redis client as 'redis'",
  });
});
