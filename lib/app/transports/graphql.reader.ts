import { type ExecutionContext, type HttpException, HttpStatus } from '@nestjs/common';
import { RateLimitDeniedException, RateLimitExceededException } from '../http/rate-limit.exceptions.js';
import { asObject } from '../../engine/util/objects.js';
import { waitIn } from './refusal.js';
import type { RequestLike, RequestParts, RequestReader } from './request-reader.js';

/** The connection of graphql-ws, which takes the place of the HTTP request. */
interface Subscriber {
  readonly request?: RequestLike;
  readonly user?: unknown;
}

/** The parts of a GraphQL context that Nest's drivers or the app provide. */
interface Shared {
  readonly req?: RequestLike & { readonly res?: unknown; readonly extra?: Subscriber };
  readonly res?: unknown;
  /** For subscriptions, Mercurius provides an object that only contains the request of their connection. */
  readonly reply?: { readonly raw?: unknown; readonly request?: RequestLike };
}

/** GraphQL: each resolved field is a call. */
export const graphqlReader: RequestReader = {
  transport: 'graphql',

  read(context): RequestParts {
    const shared = sharedOf(context);
    const reply = asObject<NonNullable<Shared['reply']>>(shared?.reply);
    const handshake = shared?.req === undefined && reply?.raw === undefined ? reply?.request : undefined;
    if (handshake !== undefined) return { request: handshake };
    const req = asObject<NonNullable<Shared['req']>>(shared?.req);
    const connection = asObject<Subscriber>(req?.extra)?.request;
    if (req !== undefined && connection !== undefined) {
      const { headers, socket, ip = socket?.remoteAddress } = connection;
      return { request: { ip, headers, user: req.user ?? req.extra?.user ?? connection.user, socket } };
    }
    const response = asObject(shared?.res) ?? reply ?? asObject(req?.res);
    return { request: req, response, sharesResponse: true };
  },

  // A request can select a field many times under aliases, each with its own `info`.
  call: (context) => ownInfo(context) ?? context.getArgs(),

  /**
   * The same exception in a form that GraphQL shows: GraphQL copies its `extensions`, and Nest's driver sets its own code if the body has a
   * `statusCode`.
   */
  refuse(exception: HttpException) {
    const isDenied = exception instanceof RateLimitDeniedException;
    if (!isDenied && !(exception instanceof RateLimitExceededException)) return exception;
    delete (exception.getResponse() as { statusCode?: number }).statusCode;
    if (isDenied) {
      const code = exception.getStatus() === 403 ? 'FORBIDDEN' : 'RATE_LIMITED';
      return Object.assign(exception, { extensions: { code } });
    }
    const { limits } = exception;
    const status = exception.getStatus();
    const isUsual = status === (HttpStatus.TOO_MANY_REQUESTS as number);
    const extensions = { code: 'RATE_LIMITED', ...(!isUsual && { status }), ...waitIn(exception), limits };
    return Object.assign(exception, { extensions });
  },
};

/** The copies of `info`, each created for one call. */
const copies = new WeakSet<object>();

/**
 * The `info` of one call. Each field has its own. Resolvers of federated references and of types are called many times with the `info` of
 * one field, and even with one reference; each of these calls gets a copy, which is also passed to the handler.
 */
function ownInfo(context: ExecutionContext): object | undefined {
  const args: unknown[] = context.getArgs();
  const at = infoAt(args);
  const info = asObject(args[at]);
  if (info === undefined || at === FIELD_INFO || copies.has(info)) return info;
  const copy = { ...info };
  copies.add(copy);
  return (args[at] = copy);
}

function sharedOf(context: ExecutionContext): Shared | undefined {
  const args: readonly unknown[] = context.getArgs();
  return asObject(args[infoAt(args) - 1]);
}

/** The index of `info` in the arguments of a field: parent value, arguments, context, `info`. */
const FIELD_INFO = 3;

/** Resolvers of references and types have no `args` parameter; those of types end with the abstract type. */
function infoAt(args: readonly unknown[]): number {
  return args.length === FIELD_INFO || isType(args[FIELD_INFO]) ? FIELD_INFO - 1 : FIELD_INFO;
}

function isType(value: unknown): boolean {
  return typeof asObject<{ toConfig?: unknown }>(value)?.toConfig === 'function';
}
