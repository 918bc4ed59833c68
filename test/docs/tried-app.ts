import type { Server } from 'node:http';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LimiterService } from '../../lib/index.js';
import { createTestingStore, RateLimitTesting, TestClock } from '../../lib/testing/index.js';

interface TriedAppOptions {
  readonly ownStore?: boolean;
  readonly fastify?: FastifyAdapter;
  /** What is done to it before it listens. */
  readonly configure?: (app: INestApplication) => void;
}

/** An app as a guide writes it, which listens; on a clock that tests move, unless its store is what is tried. */
export class TriedApp {
  private constructor(
    readonly nest: INestApplication,
    readonly clock: TestClock,
    private readonly url: string,
  ) {}

  static async start(
    metadata: ModuleMetadata,
    { ownStore = false, fastify, configure }: TriedAppOptions = {},
  ): Promise<TriedApp> {
    const clock = new TestClock();
    const builder = Test.createTestingModule(metadata);
    if (!ownStore) RateLimitTesting.useStore(builder, createTestingStore({ clock }));
    const testing = await builder.compile();
    testing.useLogger(false);
    const nest = fastify === undefined ? testing.createNestApplication() : testing.createNestApplication(fastify);
    configure?.(nest);
    await nest.listen(0, '127.0.0.1');
    return new TriedApp(nest, clock, await nest.getUrl());
  }

  get limiters(): LimiterService {
    return this.nest.get(LimiterService);
  }

  get(path = '/', headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, { headers });
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const json = { ...headers, 'content-type': 'application/json' };
    return fetch(this.url + path, { method: 'POST', body: JSON.stringify(body), headers: json });
  }

  async statuses(count: number, path = '/', headers: Record<string, string> = {}): Promise<number[]> {
    const all: number[] = [];
    for (let request = 0; request < count; request++) all.push((await this.get(path, headers)).status);
    return all;
  }

  async close(): Promise<void> {
    (this.nest.getHttpServer() as Server).closeAllConnections();
    await this.nest.close();
  }
}
