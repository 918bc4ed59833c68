import { RequestMethod } from '@nestjs/common';
import { show } from '../../engine/errors/wording.js';

/** Nest's metadata keys for classes and methods that are routes, in Nest 11 and 12. */
const CONTROLLER = '__controller__';
export const PATH = 'path';
const HOST = 'host';
export const VERSION = '__version__';
export const METHOD = 'method';
const GATEWAY = 'websockets:is_gateway';
const GATEWAY_OPTIONS = 'websockets:gateway_options';
const PORT = 'port';
const MESSAGE_MAPPING = 'websockets:message_mapping';
const MESSAGE = 'message';
const PATTERN = 'microservices:pattern';
const TRANSPORT = 'microservices:transport';
const RESOLVER_TYPE = 'graphql:resolver_type';
const RESOLVER_NAME = 'graphql:resolver_name';
const RESOLVED_FIELD = 'graphql:resolve_property';
const RESOLVED_REFERENCE = 'graphql:resolve_reference';

const ROOT_TYPES: ReadonlySet<unknown> = new Set(['Query', 'Mutation', 'Subscription']);

export const read = (key: string, target: object): unknown => Reflect.getMetadata(key, target);

/**
 * The name by which callers know a class: the path of a controller, the namespace of a gateway, the type of a resolver. It is the same in
 * every build and after every start. `undefined` if the class is none of these.
 *
 * @param prefixes the paths of the modules that it belongs to
 */
export function nameOfClass(type: object, prefixes: readonly string[]): string | undefined {
  if (isGateway(type)) {
    const { path, namespace } = (read(GATEWAY_OPTIONS, type) ?? {}) as Record<string, unknown>;
    return words('ws', read(PORT, type) || undefined, path, namespace);
  }
  if (read(CONTROLLER, type) === true) {
    return words(listed(read(HOST, type)), version(type), joined(listed(prefixes), listed(read(PATH, type))));
  }
  if (Reflect.hasMetadata(RESOLVER_TYPE, type)) return words('graphql', read(RESOLVER_NAME, type));
  return undefined;
}

/** The stable name of one of its methods: the method and path of a request, a message, a pattern, a field. */
export function nameOfRoute(className: string, method: string, handler: object): string | undefined {
  if (Reflect.hasMetadata(METHOD, handler)) {
    const verb = RequestMethod[read(METHOD, handler) as number];
    return words(verb, joined(className, listed(read(PATH, handler))), version(handler));
  }
  if (Reflect.hasMetadata(PATTERN, handler)) {
    return words(className, listed(read(PATTERN, handler)), read(TRANSPORT, handler));
  }
  if (read(MESSAGE_MAPPING, handler) === true) return words(className, shown(read(MESSAGE, handler)));
  const isField = read(RESOLVED_FIELD, handler) === true || read(RESOLVED_REFERENCE, handler) === true;
  if (isField || Reflect.hasMetadata(RESOLVER_TYPE, handler)) {
    return words(className, isField ? undefined : read(RESOLVER_TYPE, handler), read(RESOLVER_NAME, handler) ?? method);
  }
  return undefined;
}

/** The message or pattern of a gateway's or a microservice's handler, after the namespace of its gateway, if it has one. */
export function messageOf(type: object, handler: object): string | undefined {
  if (Reflect.hasMetadata(PATTERN, handler)) return listed(read(PATTERN, handler));
  if (read(MESSAGE_MAPPING, handler) !== true) return undefined;
  const { namespace } = (read(GATEWAY_OPTIONS, type) ?? {}) as Record<string, unknown>;
  return words(namespace, shown(read(MESSAGE, handler)));
}

/**
 * Returns true if a method handles requests, messages or fields. Methods that other packages decorate for other purposes are not called
 * from outside.
 */
export function isHandler(method: object): boolean {
  const keys = [METHOD, PATTERN, MESSAGE_MAPPING, RESOLVER_TYPE, RESOLVED_FIELD, RESOLVED_REFERENCE];
  return keys.some((key) => Reflect.hasMetadata(key, method));
}

/** Metadata keys that don't mean that Nest calls guards: its own enhancers, events, schedules, and documentation. */
const WITHOUT_GUARDS =
  /^(?:nestjs-sluice:|design:|__(?:guards|interceptors|pipes|exceptionFilters)__$|swagger\/|EVENT_LISTENER_METADATA$|SCHEDULE)/;

/** Returns true if Nest calls guards before any of these methods, so that limits on their class are checked. */
export function haveGuards(type: { readonly prototype: unknown }, methods: readonly string[]): boolean {
  return methods.some((name) => mayHaveGuards(type.prototype as object, name));
}

/**
 * Returns true if Nest may call guards before a method: it's a route, or another package has decorated it, as packages for tools and
 * commands do.
 */
function mayHaveGuards(prototype: object, method: string): boolean {
  const handler = (prototype as Record<string, object>)[method]!;
  if (Reflect.hasMetadata(METHOD, handler)) return true;
  const keys: readonly unknown[] = [
    ...(Reflect.getMetadataKeys(handler) as unknown[]),
    ...(Reflect.getMetadataKeys(prototype, method) as unknown[]),
  ];
  return keys.some((key) => typeof key !== 'string' || !WITHOUT_GUARDS.test(key));
}

/** Returns true for gateways. */
export function isGateway(type: object): boolean {
  return read(GATEWAY, type) === true;
}

/** Returns true if a method of a resolver resolves a field of a type, rather than a query, mutation or subscription. */
export function resolvesField(type: object, handler: object): boolean {
  if (!Reflect.hasMetadata(RESOLVER_TYPE, type)) return false;
  const isRoute = [RESOLVER_TYPE, RESOLVED_FIELD, RESOLVED_REFERENCE].some((key) => Reflect.hasMetadata(key, handler));
  return isRoute && !ROOT_TYPES.has(read(RESOLVER_TYPE, handler) ?? read(RESOLVER_TYPE, type));
}

/** The root field of GraphQL that a method of a class resolves: its operation, such as `'Mutation'`, and its name. */
export function rootFieldOf(
  type: object,
  handler: object,
  method: string,
): { readonly operation: string; readonly name: string } | undefined {
  const isField = read(RESOLVED_FIELD, handler) === true;
  const operation = read(RESOLVER_TYPE, handler) ?? (isField ? read(RESOLVER_TYPE, type) : undefined);
  if (!ROOT_TYPES.has(operation)) return undefined;
  const name = read(RESOLVER_NAME, handler);
  return { operation: operation as string, name: typeof name === 'string' && name !== '' ? name : method };
}

function version(target: object): string | undefined {
  const declared = read(VERSION, target);
  return declared === undefined ? undefined : `v${listed(declared)}`;
}

function words(...parts: readonly unknown[]): string {
  return parts
    .map(shown)
    .filter((part) => part !== '')
    .join(' ');
}

/** Joins paths, with one slash before each. */
export function joined(...paths: readonly string[]): string {
  const parts = paths.map((path) => path.replaceAll(/^\/+|\/+$/g, '')).filter((path) => path !== '');
  return `/${parts.join('/')}`;
}

export function listed(value: unknown): string {
  return (Array.isArray(value) ? value : [value]).map(shown).join(',');
}

/** A name, pattern or transport as text. Packages may pass a symbol or any other value. */
function shown(value: unknown): string {
  if (value === undefined || value === null) return '';
  const named = nameOf(value);
  if (typeof named === 'string') return named;
  try {
    return JSON.stringify(named, (_, part: unknown) => nameOf(part));
  } catch {
    return show(named);
  }
}

/** A name for values that JSON omits or rejects; other values are returned unchanged. */
function nameOf(value: unknown): unknown {
  if (typeof value === 'symbol') return value.description || String(value);
  if (typeof value === 'function') return value.name || 'function';
  return typeof value === 'bigint' || value instanceof RegExp ? String(value) : value;
}

/** Returns true if a method is an HTTP route and nothing else. */
export function isHttpRoute(handler: object): boolean {
  return Reflect.hasMetadata(METHOD, handler) && !Reflect.hasMetadata(PATTERN, handler);
}
