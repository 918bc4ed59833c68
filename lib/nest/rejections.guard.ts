import {
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  HttpException,
  Inject,
  Injectable,
  type Type,
} from '@nestjs/common';
import { isObservable, lastValueFrom } from 'rxjs';
import { RateLimitExceededException } from '../app/http/rate-limit.exceptions.js';
import type { Limiter } from '../app/limiter/limiter.js';
import { InjectLimiter } from './decorators.js';
import { RejectedRequests } from './request/rejected-requests.js';

/** The statuses of a guard's rejections: not logged in, and not allowed. */
const REJECTIONS: readonly number[] = [401, 403];

/**
 * Returns a guard that limits the requests that another guard rejects. A request that the guard accepts is neither counted nor limited. One
 * that it rejects, with `false` or with an error of status 401 or 403, is counted by the limit's own `key`, by default the address, and
 * gets a 429 once the limit is used up. In GraphQL, a `GraphQLError` with the code `UNAUTHENTICATED` or `FORBIDDEN` is such an error. A
 * rejection that the `count` of the limit doesn't count isn't limited either. So the order of guards doesn't matter, and a client with a
 * valid token isn't locked out by others at its address. The guard itself runs for every request.
 *
 * The app doesn't start if no limit of that name is defined.
 *
 * @param guard a guard, such as `AuthGuard('jwt')` of `@nestjs/passport` or a class of your own
 * @param limit the name of a limit of `define`
 * @example
 * ```ts
 * { provide: APP_GUARD, useClass: RateLimitRejections(AuthGuard('jwt'), 'rejected') }
 * ```
 */
export function RateLimitRejections<Guard extends Type<CanActivate>>(guard: Guard, limit: string): Guard {
  @Injectable()
  class LimitedGuard extends (guard as Type<CanActivate>) {
    /** Makes start-up fail for an unknown name. */
    @InjectLimiter(limit) readonly limiterOfRejections!: Limiter;
    @Inject(RejectedRequests) readonly rejectedRequests!: RejectedRequests;

    override async canActivate(context: ExecutionContext): Promise<boolean> {
      let accepts: boolean;
      try {
        const answer = super.canActivate(context);
        accepts = await (isObservable(answer) ? lastValueFrom(answer) : answer);
      } catch (error) {
        if (isRejection(error, context)) await this.rejectedRequests.count(limit, context, error);
        throw error;
      }
      // Nest then rejects the request with this error.
      if (!accepts) await this.rejectedRequests.count(limit, context, new ForbiddenException());
      return accepts;
    }
  }
  Object.defineProperty(LimitedGuard, 'name', { value: `RateLimitRejections(${guard.name})` });
  return LimitedGuard as Type<CanActivate> as Guard;
}

/** Transports other than HTTP have their own errors. Over HTTP, other errors are bugs of the guard, not mistakes of the client. */
function isRejection(error: unknown, context: ExecutionContext): boolean {
  if (error instanceof RateLimitExceededException) return false;
  if (error instanceof HttpException) return REJECTIONS.includes(error.getStatus());
  const type = context.getType<string>();
  return type === 'graphql' ? isGraphqlRejection(error) : ['ws', 'rpc'].includes(type);
}

/** The extensions of a `GraphQLError` contain the reason: an Apollo code, or a status. */
function isGraphqlRejection(error: unknown): boolean {
  const { code, http } = (error as GraphqlErrorLike | undefined)?.extensions ?? {};
  return code === 'UNAUTHENTICATED' || code === 'FORBIDDEN' || REJECTIONS.includes(http?.status as number);
}

/** The part of a `GraphQLError` that is used. */
interface GraphqlErrorLike {
  readonly extensions?: { readonly code?: unknown; readonly http?: { readonly status?: unknown } };
}
