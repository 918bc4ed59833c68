import type { ExecutionContext, HttpException } from '@nestjs/common';
import { RateLimitExceededException } from '../http/rate-limit-exceeded.exception.js';
import { asObject } from './as-object.js';
import { waitOf } from './refusal.js';
import type { RequestLike, RequestParts, RequestReader } from './request-reader.js';

/** The connection of graphql-ws, which stands where HTTP has its request. */
interface Subscriber {
  readonly request?: RequestLike;
  readonly user?: unknown;
}

/** What Nest's drivers put into the context of a GraphQL request, or the app itself. */
interface Shared {
  readonly req?: RequestLike & { readonly res?: unknown; readonly extra?: Subscriber };
  readonly res?: unknown;
  readonly reply?: unknown;
}

/** GraphQL: each field that has a resolver is a call. */
export const graphqlReader: RequestReader = {
  transport: 'graphql',

  read(context): RequestParts {
    const { shared } = argsOf(context);
    const req = asObject<NonNullable<Shared['req']>>(shared?.req);
    const connection = asObject<Subscriber>(req?.extra)?.request;
    if (req !== undefined && connection !== undefined) {
      const { headers, socket, ip = socket?.remoteAddress } = connection;
      return { request: { ip, headers, user: req.user ?? req.extra?.user ?? connection.user, socket } };
    }
    const response = asObject(shared?.res) ?? asObject(shared?.reply) ?? asObject(req?.res);
    return { request: req, response, sharesResponse: true };
  },

  // A request can name a field many times under aliases; `info` tells them apart.
  call: (context) => argsOf(context).info ?? context.getArgs(),

  /**
   * The same exception, as GraphQL shows it: it takes over `extensions`, and Nest's driver gives an error a code of its own if the
   * body has a `statusCode`.
   */
  refuse(exception: HttpException) {
    if (!(exception instanceof RateLimitExceededException)) return exception;
    delete (exception.getResponse() as { statusCode?: number }).statusCode;
    const { limits } = exception;
    return Object.assign(exception, { extensions: { code: 'RATE_LIMITED', retryAfterMs: waitOf(exception), limits } });
  },
};

/** A resolver of a federated reference gets no arguments of a field. */
function argsOf(context: ExecutionContext): { shared: Shared | undefined; info: object | undefined } {
  const args: readonly unknown[] = context.getArgs();
  const [shared, info] = args.length === 3 ? args.slice(1) : args.slice(2);
  return { shared: asObject(shared), info: asObject(info) };
}
