import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';

const QUOTA = 5;
const WINDOW_MS = 10_000;
const QUOTES = ['Water finds its way.', 'Many drops make a river.', 'The gate opens for everyone in turn.'];

/** An API of others: it allows 5 calls in 10 seconds, says so in each answer, and refuses more. */
@Injectable()
export class QuoteProvider implements OnModuleInit, OnModuleDestroy {
  private used = 0;
  private windowEnd = 0;
  private readonly server = createServer((_, response) => {
    const now = Date.now();
    if (now >= this.windowEnd) [this.used, this.windowEnd] = [0, now + WINDOW_MS];
    const isAllowed = this.used < QUOTA;
    if (isAllowed) this.used++;
    const seconds = Math.ceil((this.windowEnd - now) / 1000);
    response.setHeader('RateLimit', `"quotes";r=${QUOTA - this.used};t=${seconds}`);
    if (!isAllowed) response.setHeader('Retry-After', seconds);
    response.writeHead(isAllowed ? 200 : 429).end(QUOTES[this.used % QUOTES.length]);
  });

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async onModuleInit(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async onModuleDestroy(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
