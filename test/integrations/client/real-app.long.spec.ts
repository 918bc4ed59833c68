import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimit, RateLimitModule } from '../../../lib/index.js';
import { paced } from '../../../lib/integrations/client/index.js';
import { browserOfSpec } from '../../support/browser/browser.js';
import { ensureBuilt } from '../../support/processes/built.js';
import { PACKAGE_FOLDER } from '../../support/processes/npm.js';
import { callers } from './moved-calls.js';

const CALLS = 60;

let served = 0;

@Controller()
class Items {
  @Get('items')
  @RateLimit({ name: 'items', algo: 'gcra', rate: 10, interval: '1s', key: 'header:x-client' })
  get() {
    served++;
    return 'ok';
  }
}

class App {}

describe('paced, at an app that listens', () => {
  let app: INestApplication;
  let url: string;
  const browser = browserOfSpec();
  let pages: Server;
  const pageWith = async (html: string): Promise<string> => {
    pages = createServer((_, response) => void response.setHeader('content-type', 'text/html').end(html));
    await new Promise<void>((resolve) => {
      pages.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(pages.address() as AddressInfo).port}/`;
  };
  beforeAll(async () => {
    await ensureBuilt();
    const module = { module: App, imports: [RateLimitModule.forRoot()], controllers: [Items] };
    app = await NestFactory.create(module, { logger: false });
    app.enableCors();
    await app.listen(0, '127.0.0.1');
    url = `${await app.getUrl()}/items`;
  });
  afterAll(async () => {
    pages?.closeAllConnections();
    pages?.close();
    (app.getHttpServer() as Server).closeAllConnections();
    await app.close();
  });

  it('is never refused, with 50 callers in Node', async () => {
    const statuses: number[] = [];
    const fetch = paced(async (input, init) => {
      const response = await globalThis.fetch(input, init);
      statuses.push(response.status);
      return response;
    });
    await callers(50, CALLS, async () => (await fetch(url, { headers: { 'x-client': 'node' } })).text());
    expect(statuses).toEqual(Array.from({ length: CALLS }, () => 200));
  });

  it('is never refused, with 50 callers on a page of another origin in Chromium', async () => {
    served = 0;
    const client = readFileSync(join(PACKAGE_FOLDER, 'dist/client/index.js'), 'utf8');
    const { page, complaints } = await browser.open(
      await pageWith(`<!doctype html><script type="module">${client};window.paced = paced;</script>`),
    );
    await page.waitForFunction('window.paced !== undefined');
    const statuses = await page.evaluate(
      async ([address, count]) => {
        const seen: number[] = [];
        const { paced: make } = globalThis as unknown as { paced: typeof paced };
        const fetch = make(async (input, init) => {
          const response = await globalThis.fetch(input, init);
          seen.push(response.status);
          return response;
        });
        const calls = Array.from({ length: count }, async () =>
          (await fetch(address, { headers: { 'x-client': 'page' } })).text(),
        );
        await Promise.all(calls);
        return seen;
      },
      [url, CALLS] as const,
    );
    expect(statuses).toEqual(Array.from({ length: CALLS }, () => 200));
    expect(served).toBe(CALLS);
    expect(complaints.filter((complaint) => !complaint.includes('favicon'))).toEqual([]);
  });
});
