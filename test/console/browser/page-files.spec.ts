import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PAGE_SCRIPT, PAGE_STYLE } from '../../../lib/console/page.generated.js';
import { browserOfSpec } from '../../support/browser.js';

const POLICY = "default-src 'none'; script-src 'nonce-n'; style-src 'nonce-n'; connect-src 'self'; img-src data:";
const HTML = `<!doctype html><html lang="en"><title>-</title><link rel="icon" href="data:,"><link rel="stylesheet" nonce="n" href="css"><body><script nonce="n" src="js"></script>`;

const TYPES = {
  '/': ['text/html', HTML],
  '/js': ['text/javascript', text(PAGE_SCRIPT.brotli)],
  '/css': ['text/css', text(PAGE_STYLE.brotli)],
} as const;

function text(brotli: string): string {
  return brotliDecompressSync(Buffer.from(brotli, 'base64')).toString();
}

describe('the files of the page', () => {
  const browser = browserOfSpec();
  let server: Server;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const [type, body] = TYPES[request.url as keyof typeof TYPES] ?? ['text/plain', ''];
      response
        .writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': POLICY })
        .end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });

  afterAll(() => new Promise((resolve) => server.close(resolve)));

  it('run under a strict policy', async () => {
    const { page, complaints } = await browser.open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await page.getByText('Console').waitFor();
    expect(complaints).toEqual([]);
  });
});
