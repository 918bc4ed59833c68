import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages/general.js';
import type { RequestLike } from '../transports/request-reader.js';

/** What tells Express and Fastify apart, and whether they trust a proxy. */
interface FrameworkRequest extends RequestLike {
  /** Express only. */
  readonly app?: { get?: unknown };
  /** Fastify only. */
  readonly server?: unknown;
  /** Of Fastify only if it trusts a proxy. */
  readonly ips?: unknown;
}

/**
 * Warns, once an app, of a request that names its client in a header which the framework does not believe: behind a proxy that
 * is not trusted all clients count as one.
 */
export class ProxyWarning {
  /** Once it has warned, or knows that a proxy is trusted, no request is looked at any more. */
  private done = false;

  look(request: RequestLike | undefined): void {
    if (this.done || request?.headers?.['x-forwarded-for'] === undefined) return;
    const { app, server, ips }: FrameworkRequest = request;
    if (typeof app?.get === 'function') {
      this.conclude(app.get('trust proxy'), "app.set('trust proxy', ...)");
    } else if (server !== undefined) {
      this.conclude(ips, 'new FastifyAdapter({ trustProxy: ... })');
    }
  }

  private conclude(trusts: unknown, setting: string): void {
    this.done = true;
    if (!trusts) logger.warn(messages.proxyUntrusted(setting));
  }
}
