import 'reflect-metadata';
import { ApolloDriver } from '@nestjs/apollo';
import type { Type } from '@nestjs/common';
import { GraphQLModule } from '@nestjs/graphql';
import { MercuriusDriver } from '@nestjs/mercurius';
import { type RateLimitGraphqlOptions, RateLimitGraphqlModule } from '../../../lib/integrations/graphql/index.js';
import { LimiterService, type RateLimitModuleOptions } from '../../../lib/index.js';
import { HttpApp } from '../../e2e/http-app.js';
import { freshPrefix } from '../../support/limits/stores.js';

/** The servers of GraphQL that Nest has drivers for. */
export const servers = ['Apollo on Express', 'Apollo on Fastify', 'Mercurius'] as const;
export type GraphqlServer = (typeof servers)[number];

export interface GraphqlError {
  readonly message: string;
  readonly path?: readonly unknown[];
  readonly extensions: Record<string, unknown>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly data?: Record<string, unknown> | null;
  readonly errors?: readonly GraphqlError[];
  readonly cost?: unknown;
}

export interface GraphqlAppOptions {
  readonly providers: readonly unknown[];
  readonly limits: RateLimitModuleOptions;
  readonly operations?: RateLimitGraphqlOptions;
  /** Options of the driver. */
  readonly graphql?: object;
  /** Whether counters are on a real Redis. */
  readonly onRedis?: boolean;
}

export interface Sent {
  readonly headers?: Record<string, string>;
  readonly variables?: object;
  readonly operationName?: string;
}

/** An app with a real server of GraphQL, which is asked over HTTP. */
export class GraphqlApp {
  private constructor(readonly app: HttpApp) {}

  static async start(
    server: GraphqlServer,
    { providers, limits, operations = {}, graphql = {}, onRedis = false }: GraphqlAppOptions,
  ): Promise<GraphqlApp> {
    const isFastify = server !== 'Apollo on Express';
    const ofDriver =
      server === 'Mercurius'
        ? { driver: MercuriusDriver }
        : { driver: ApolloDriver, ...(isFastify && { context: (req: unknown, reply: unknown) => ({ req, reply }) }) };
    const redis = { store: undefined, redis: process.env['TEST_REDIS_URL'] as string, prefix: freshPrefix() };
    const app = await HttpApp.start(isFastify ? 'fastify' : 'express', {
      imports: [
        GraphQLModule.forRoot({ ...ofDriver, autoSchemaFile: true, graphiql: false, ...graphql } as never),
        RateLimitGraphqlModule.forRoot(operations),
      ],
      providers: providers as Type[],
      limits: { ...(onRedis && redis), ...limits },
    });
    return new GraphqlApp(app);
  }

  get url(): string {
    return `${this.app.url}/graphql`;
  }

  async post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const type = { 'content-type': 'application/json' };
    return fetch(this.url, { method: 'POST', headers: { ...type, ...headers }, body: JSON.stringify(body) });
  }

  async ask(query: string, { headers = {}, ...sent }: Sent = {}): Promise<Answer> {
    const response = await this.post({ query, ...sent }, headers);
    const { data, errors, extensions } = (await response.json()) as Answer & { extensions?: { cost?: unknown } };
    return {
      status: response.status,
      headers: response.headers,
      ...(data !== undefined && { data }),
      ...(errors !== undefined && { errors }),
      cost: extensions?.cost ?? errors?.[0]?.extensions?.['cost'],
    };
  }

  /** What is left of a defined limit. */
  async left(name: string, key = 'ip:127.0.0.1'): Promise<number> {
    return (await this.app.nest.get(LimiterService).for(name).peek(key)).remaining;
  }

  close(): Promise<void> {
    return this.app.close();
  }
}
