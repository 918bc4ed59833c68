import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Test, type TestingModule } from '@nestjs/testing';
import { LimiterService, RateLimitModule, type RateLimitModuleOptions } from '../../../lib/index.js';
import { OutboundLimiter } from '../../../lib/integrations/outbound/index.js';
import { patient } from '../../support/redis/patience.mjs';

export type Answer = (request: IncomingMessage, response: ServerResponse, number: number) => void;

/** A request as an upstream got it. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly body: string;
}

/** An API of others, on loopback. */
export class Upstream {
  readonly received: Received[] = [];
  /** Answers that wait to be sent. */
  readonly held: ServerResponse[] = [];

  private constructor(private readonly server: Server) {}

  /** Answers each request, numbered from 1; with 200 and its number unless told otherwise. */
  static async start(answer: Answer = (_, response, number) => void response.end(String(number))): Promise<Upstream> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method = '', url = '' } = request;
        answer(request, response, upstream.received.push({ method, url, body: Buffer.concat(chunks).toString() }));
      });
    });
    const upstream = new Upstream(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** An app's limiters, and their end. */
export async function startLimiters(
  options: RateLimitModuleOptions,
): Promise<{ limiters: LimiterService; outbound: OutboundLimiter; app: TestingModule }> {
  const app = await Test.createTestingModule({ imports: [RateLimitModule.forRoot(patient(options))] }).compile();
  app.useLogger(false);
  await app.init();
  return { limiters: app.get(LimiterService), outbound: app.get(OutboundLimiter), app };
}
