import { type INestApplicationContext, Injectable, type NestMiddleware } from '@nestjs/common';
import { providerOf } from './copies.js';
import { refuseByHand } from './missing-module.js';
import { RequestLimiter } from './request/request-limiter.js';

/** A Node-style middleware, which both Express and Fastify accept. You can also call it in a Fastify hook with its request and reply. */
export type RateLimitMiddlewareFunction = (
  request: object,
  response: object,
  next: (error?: Error) => void,
) => Promise<void>;

/**
 * Checks the limits of the module that have `phase: 'middleware'`, in one atomic check, before the route is known. The guard does not
 * charge them again. Rejections go to the exception filters, like those of the guard.
 *
 * @example
 * ```ts
 * consumer.apply(RateLimitMiddleware).forRoutes('{*path}');
 * ```
 */
@Injectable()
export class RateLimitMiddleware implements NestMiddleware {
  /** @internal */
  constructor(private readonly limiter: RequestLimiter) {
    refuseByHand('RateLimitMiddleware', limiter);
  }

  /** Checks a request. A rejection is passed to `next`. */
  async use(request: object, response: object, next: (error?: Error) => void): Promise<void> {
    try {
      const checked = this.limiter.beforeRoute(request, response);
      if (checked !== true) await checked;
    } catch (error) {
      // Passed to `next` rather than thrown: only then do filters receive Fastify's own request and reply.
      next(error as Error);
      return;
    }
    next();
  }
}

/**
 * Returns the middleware as a function, for `app.use` in `main.ts`. There it runs before bodies are parsed, even with Express.
 *
 * @param app the app, which imports `RateLimitModule`; otherwise throws `RateLimitConfigError`
 * @example
 * ```ts
 * const app = await NestFactory.create(AppModule);
 * app.use(rateLimitMiddleware(app));
 * ```
 */
export function rateLimitMiddleware(app: INestApplicationContext): RateLimitMiddlewareFunction {
  const middleware = new RateLimitMiddleware(providerOf(app, RequestLimiter, 'rateLimitMiddleware'));
  return (request, response, next) => middleware.use(request, response, next);
}
