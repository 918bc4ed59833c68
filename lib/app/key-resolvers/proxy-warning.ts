import { logger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { proxiesOfFastify } from '../transports/framework-address.js';
import type { RequestLike } from '../transports/request-reader.js';

/** The setting that names trusted proxies, by framework. */
const EXPRESS = "app.set('trust proxy', ...)";
const FASTIFY = 'new FastifyAdapter({ trustProxy: ... })';

/** The members that tell Express from Fastify, and show if they trust a proxy. */
interface FrameworkRequest extends RequestLike {
  /** Express only. */
  readonly app?: { get?: unknown };
  /** Fastify only. */
  readonly server?: unknown;
  /** Fastify only, if it trusts a proxy. */
  readonly ips?: unknown;
}

/**
 * Warns, once per app, about requests with the client's address in a header that the framework does not trust: behind an untrusted proxy,
 * all clients share one counter.
 */
export class ProxyWarning {
  /** True if it has warned, or a proxy is known to be trusted. Requests aren't examined after that. */
  private done = false;

  look(request: RequestLike | undefined): void {
    if (this.done || request?.headers?.['x-forwarded-for'] === undefined) return;
    const { app, server, ips }: FrameworkRequest = request;
    if (typeof app?.get === 'function') {
      this.conclude(app.get('trust proxy'), messages.proxyUntrusted(EXPRESS));
    } else if (server !== undefined) {
      const proxies = proxiesOfFastify(server);
      // With a number of proxies, Fastify trusts none from 5.12 on.
      const isIgnored = typeof proxies === 'number' && Array.isArray(ips) && ips.length < 2;
      const message = isIgnored ? messages.proxyCountIgnored(proxies, FASTIFY) : messages.proxyUntrusted(FASTIFY);
      this.conclude(!isIgnored && ips, message);
    }
  }

  private conclude(trusts: unknown, message: string): void {
    this.done = true;
    if (!trusts) logger.warn(message);
  }
}
