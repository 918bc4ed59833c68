import { type ExecutionContext, RequestMethod } from '@nestjs/common';
import type { RequestRoute } from '../../storage/stores/store.js';
import { asObject } from '../../engine/util/objects.js';
import type { HandlerClass } from './namespaces.js';
import type { RoutePaths } from './route-paths.js';
import { joined, listed, messageOf, METHOD, PATH, read } from './route-names.js';

/** A request of Express or Fastify, once its route is known. */
interface RoutedRequest {
  readonly method?: unknown;
  /** Express: the mounted router's path, and the pattern in it. */
  readonly baseUrl?: unknown;
  readonly route?: { readonly path?: unknown };
  /** Fastify. */
  readonly routeOptions?: { readonly url?: unknown };
}

interface FieldInfo {
  readonly fieldName?: unknown;
  readonly parentType?: { readonly name?: unknown };
  readonly operation?: { readonly operation?: unknown };
}

/** The route of a call; `undefined` if its handler is not known yet. `paths` derives the path if the request doesn't contain it. */
export function routeOf(context: ExecutionContext, paths?: RoutePaths): RequestRoute | undefined {
  const handler = context.getHandler() as Function | null;
  const type = context.getClass() as HandlerClass | null;
  if (handler === null || type === null) return undefined;
  const transport = context.getType<string>();
  const args: readonly unknown[] = context.getArgs();
  if (transport === 'http') return httpRoute(asObject(args[0]) ?? {}, type, handler, paths);
  if (transport === 'graphql') return fieldRoute(args, type, handler);
  return { method: transport, path: messageOf(type, handler) ?? `${type.name}.${handler.name}` };
}

function httpRoute(
  { method, baseUrl, route, routeOptions }: RoutedRequest,
  type: HandlerClass,
  handler: object,
  paths: RoutePaths | undefined,
): RequestRoute {
  const declared = read(METHOD, handler) as RequestMethod | undefined;
  const verb = typeof method === 'string' ? method : RequestMethod[declared ?? RequestMethod.GET];
  if (typeof route?.path === 'string') {
    return { method: verb, path: (typeof baseUrl === 'string' ? baseUrl : '') + route.path };
  }
  const url = routeOptions?.url;
  if (typeof url === 'string') return { method: verb, path: url };
  return {
    method: verb,
    path: paths?.of(type, handler) ?? joined(listed(read(PATH, type)), listed(read(PATH, handler))),
  };
}

function fieldRoute(args: readonly unknown[], type: Function, handler: Function): RequestRoute {
  // The info is the last argument, except for abstract types, which come after it.
  const infos = args.map((each) => asObject<FieldInfo>(each));
  const info = infos.findLast((each) => typeof each?.fieldName === 'string');
  const method = info?.operation?.operation;
  const parent = info?.parentType?.name;
  return {
    method: typeof method === 'string' ? method : 'query',
    path: info === undefined ? `${type.name}.${handler.name}` : `${String(parent)}.${String(info.fieldName)}`,
  };
}
