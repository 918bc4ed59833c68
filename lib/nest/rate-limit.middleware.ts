import { type INestApplicationContext, Injectable, type NestMiddleware } from '@nestjs/common';
import { RequestLimiter } from '../request/request-limiter.js';

/** A middleware of Node's kind, which Express and Fastify both take. */
export type RateLimitMiddlewareFunction = (
  request: object,
  response: object,
  next: (error?: unknown) => void,
) => Promise<void>;

/**
 * Checks the limits of the module that have `phase: 'middleware'`, in one atomic check, before the route is known. The guard
 * does not charge them again. A refusal goes to the exception filters, as one of the guard does.
 *
 * @example
 * ```ts
 * consumer.apply(RateLimitMiddleware).forRoutes('{*path}');
 * ```
 */
@Injectable()
export class RateLimitMiddleware implements NestMiddleware {
  /** @internal */
  constructor(private readonly limiter: RequestLimiter) {}

  /** Checks a request. What refuses it is handed on to `next`. */
  async use(request: object, response: object, next: (error?: unknown) => void): Promise<void> {
    try {
      const checked = this.limiter.beforeRoute(request, response);
      if (checked !== true) await checked;
    } catch (error) {
      // Not thrown: over Fastify only an error that is handed on reaches filters with Fastify's own request and reply.
      next(error);
      return;
    }
    next();
  }
}

/**
 * The same as a function, for `app.use` in `main.ts`: there it runs before bodies are parsed, with Express, too.
 *
 * @param app the app, which imports `RateLimitModule`
 * @example
 * ```ts
 * const app = await NestFactory.create(AppModule);
 * app.use(rateLimitMiddleware(app));
 * ```
 */
export function rateLimitMiddleware(app: INestApplicationContext): RateLimitMiddlewareFunction {
  const middleware = new RateLimitMiddleware(app.get(RequestLimiter));
  return (request, response, next) => middleware.use(request, response, next);
}
