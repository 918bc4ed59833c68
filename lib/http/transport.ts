import type { ExecutionContext } from '@nestjs/common';

/** What is read of a request, whatever framework made it. */
export interface RequestLike {
  readonly ip?: unknown;
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly user?: unknown;
}

/** The connection under a response: Node's own, which says when the client goes away. */
export interface ClosableResponse {
  readonly destroyed?: boolean;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/** The request and the response behind a call, as far as its transport has them. */
export interface Transport {
  readonly request: RequestLike | undefined;
  readonly response: object | undefined;
}

const NONE: Transport = { request: undefined, response: undefined };

/** Finds request and response. Only HTTP, and GraphQL over it, has them. */
export function transportOf(context: ExecutionContext): Transport {
  const args: readonly unknown[] = context.getArgs();
  switch (context.getType<string>()) {
    case 'http':
      return { request: asObject(args[0]), response: asObject(args[1]) };
    case 'graphql': {
      const shared: { req?: unknown; res?: unknown; reply?: unknown } = asObject(args[2]) ?? {};
      const request: (RequestLike & { res?: unknown }) | undefined = asObject(shared.req);
      return { request, response: asObject(shared.res) ?? asObject(shared.reply) ?? asObject(request?.res) };
    }
    default:
      return NONE;
  }
}

/**
 * The object that stands for one call: guard and interceptor both see it, and no other call does. A GraphQL request can
 * name a field many times under aliases, and each is a call; its fourth argument tells them apart.
 */
export function callOf(context: ExecutionContext): object {
  const args: readonly unknown[] = context.getArgs();
  switch (context.getType<string>()) {
    case 'http':
      return asObject(args[0]) ?? args;
    case 'graphql':
      return asObject(args[3]) ?? transportOf(context).request ?? args;
    case 'rpc':
      return asObject(args[1]) ?? args;
    default:
      return args;
  }
}

/** The connection that a response goes out on, if it is one of Node's. */
export function connectionOf(response: object | undefined): ClosableResponse | undefined {
  // Fastify wraps the response, Express extends it.
  const { raw = response }: { raw?: unknown } = response ?? {};
  return isClosable(raw) ? raw : undefined;
}

function isClosable(value: unknown): value is ClosableResponse {
  return typeof value === 'object' && value !== null && 'once' in value && typeof value.once === 'function';
}

function asObject(value: unknown): object | undefined {
  return typeof value === 'object' && value !== null ? value : undefined;
}
