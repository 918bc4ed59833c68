import type { Phase } from '../../app/config/common-limit-options.js';
import { declaredOn, lineageOf } from '../../app/rules/declared-metadata.js';
import type { HandlerClasses } from '../../app/rules/handler-classes.js';
import type { LimitRegistry } from '../../app/rules/limit-registry.js';
import { classNameOf, type HandlerClass } from '../../app/rules/namespaces.js';
import {
  isHandler,
  isHttpRoute,
  listed,
  messageOf,
  METHOD,
  read,
  resolvesField,
  rootFieldOf,
} from '../../app/rules/route-names.js';
import type { RoutePaths } from '../../app/rules/route-paths.js';
import type { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import { type DeclarationSite, isSource } from '../../app/rules/route-rules.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import { nameOfKey } from '../../app/key-resolvers/index.js';
import { Origins, skipOf as skipText, trace } from '../explain/trace.js';
import { ALL_CALLS, LIMITED_METHOD, type LimitedMethodSite } from '../methods/limited-calls.js';

/**
 * How a route is called: over HTTP, as a query, mutation or subscription, as a field of a GraphQL type, as an event of a gateway, as a
 * message of a microservice, by an MCP client, or as a BullMQ job.
 */
export type RouteKind = 'http' | 'graphql' | 'field' | 'event' | 'message' | 'mcp' | 'job';

/** A limit that applies to a route. */
export interface ListedLimit {
  readonly name: string;
  readonly key: string;
  /** When it is checked; jobs and `@Limited` have no phases. */
  readonly phase?: Phase;
  readonly mode?: LimitMode;
  /** Where it is declared: `limits[0]`, `@RateLimit on UsersController.list`. */
  readonly declared: string;
  /** For a limit used by name, where it is defined: `define.login`. */
  readonly definition?: string;
}

/** A route, and what limits it. */
export interface ListedRoute {
  readonly kind: RouteKind;
  /** The name for clients: `GET /v1/users/:id`, `Query users`. */
  readonly route: string;
  /** The versions, such as `2` or `1,2`, if clients send them in a header or otherwise outside of the path. */
  readonly version?: string;
  readonly controller: string;
  readonly handler: string;
  readonly limits: readonly ListedLimit[];
  /** Where functions are declared that find further limits by the request. */
  readonly functions: readonly string[];
  /** The `@SkipRateLimit()` that exempts it from inherited limits. */
  readonly skips?: string;
  /** Why, as that says. */
  readonly because?: string;
  /** True if nothing limits it, and no reason is given for that. Never true of jobs and of fields of types. */
  readonly unlimited: boolean;
}

/** The parts of an app that know its routes. They may come from another copy of the package. */
export interface RouteParts {
  readonly registry: LimitRegistry;
  readonly rules: RouteRulesRegistry;
  readonly classes: HandlerClasses;
  readonly paths: RoutePaths;
}

/** Nest's verbs of HTTP routes, in the order of `RequestMethod`. */
const VERBS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'ALL', 'OPTIONS', 'HEAD', 'SEARCH'];
const PATTERN = 'microservices:pattern';
/** Metadata keys of packages for tools, prompts and resources of MCP. */
const MCP = /^mcp:(?:tool|prompt|resource)/;
/** Metadata keys of `@nestjs/bullmq` and `@nestjs/bull` for a class of jobs. */
const PROCESSORS = ['bullmq:processor_metadata', 'bull:module_queue'];

const KINDS: readonly RouteKind[] = ['http', 'graphql', 'field', 'event', 'message', 'mcp', 'job'];

/** All routes of an app, by their kinds and paths: routes that clients call, and BullMQ jobs. */
export function listRoutes(parts: RouteParts): ListedRoute[] {
  const types = [...new Set(parts.classes.known())];
  return types.flatMap((type) => [...routesOf(type, parts), ...jobsOf(type, parts)]).toSorted(inOrder);
}

function inOrder(one: ListedRoute, other: ListedRoute): number {
  const byKind = KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind);
  return byKind || compare(pathOf(one), pathOf(other));
}

/** The path before the verb. */
function pathOf({ kind, route }: ListedRoute): string {
  const [verb, ...rest] = route.split(' ');
  return kind === 'http' ? [...rest, verb].join(' ') : route;
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function routesOf(type: HandlerClass, parts: RouteParts): ListedRoute[] {
  const routes = [...parts.classes.handlers(type)].filter(
    ([, handler]) => isHandler(handler) || toolOf(handler) !== undefined,
  );
  return routes.map(([method, handler]) => {
    const name = nameOf(type, method, handler, parts.paths);
    const rules = parts.rules.of(type, handler);
    const { inForce } = trace(rules.declared, new Map(), new Origins(parts.registry));
    const checkedBefore = inForce.map(({ rule, origin }): ListedLimit => ({
      name: rule.name,
      key: nameOfKey(rule.settings.key.given),
      phase: rule.phase,
      mode: rule.limit.mode,
      declared: origin.location,
      ...(origin.definition === undefined ? {} : { definition: origin.definition }),
    }));
    const limits = [...checkedBefore, ...methodLimitsOf(handler, parts)];
    const functions = rules.sites.flatMap(({ specs }) => specs.filter(isSource)).map(({ location }) => location);
    const skip = skipOf(type, handler, rules.declared);
    // Of a type's field, its operation has limits.
    const needsLimit = name.kind !== 'field';
    const isLimited = limits.some(({ mode }) => mode !== 'off') || functions.length > 0;
    return {
      ...name,
      controller: classNameOf(type),
      handler: method,
      limits,
      functions,
      ...skip,
      unlimited: needsLimit && !isLimited && skip?.because === undefined,
    };
  });
}

/** The limits that `@Limited` checks when a method is called. */
function methodLimitsOf(method: object | undefined, { registry }: RouteParts): ListedLimit[] {
  const sites = (method === undefined ? undefined : read(LIMITED_METHOD, method)) as
    | readonly LimitedMethodSite[]
    | undefined;
  return (sites ?? []).map(({ limit, location, settings, declaration }) => {
    const rule = registry.rule(limit, declaration);
    const { definition } = new Origins(registry).ofSite(rule, { location }, 'handler');
    return {
      name: rule.name,
      key: settings.key === undefined ? ALL_CALLS : 'a function',
      mode: rule.limit.mode,
      declared: location,
      ...(definition === undefined ? {} : { definition }),
    };
  });
}

/** The name of a route for clients. */
function nameOf(
  type: HandlerClass,
  method: string,
  handler: object,
  paths: RoutePaths,
): Pick<ListedRoute, 'kind' | 'route' | 'version'> {
  if (isHttpRoute(handler)) {
    const route = `${VERBS[read(METHOD, handler) as number] ?? 'ALL'} ${paths.of(type, handler)}`;
    const version = paths.versionsOf(type, handler);
    return { kind: 'http', route, ...(version === undefined ? {} : { version }) };
  }
  const tool = toolOf(handler);
  if (tool !== undefined) return { kind: 'mcp', route: tool || method };
  const message = messageOf(type, handler);
  if (message !== undefined)
    return { kind: Reflect.hasMetadata(PATTERN, handler) ? 'message' : 'event', route: message };
  const field = rootFieldOf(type, handler, method);
  if (field !== undefined) return { kind: 'graphql', route: `${field.operation} ${field.name}` };
  const isField = resolvesField(type, handler);
  return { kind: isField ? 'field' : 'message', route: `${classNameOf(type)}.${method}` };
}

/** The name of a tool, a prompt or a resource of MCP; empty if only its decorator knows it. */
function toolOf(handler: object): string | undefined {
  const pattern = [read(PATTERN, handler)].flat()[0] as { mcp?: unknown; name?: unknown } | undefined;
  if (typeof pattern === 'object' && pattern !== null && typeof pattern.mcp === 'string') {
    return `${pattern.mcp} ${String(pattern.name)}`;
  }
  const keys = (Reflect.getMetadataKeys(handler) as unknown[]).filter((key) => typeof key === 'string');
  const key = keys.find((each) => MCP.test(each));
  if (key === undefined) return undefined;
  const { name } = (read(key, handler) ?? {}) as { name?: unknown };
  return typeof name === 'string' ? `${key.slice('mcp:'.length)} ${name}` : '';
}

/** The nearest exception from inherited limits, and the nearest reason of one. */
function skipOf(
  type: HandlerClass,
  handler: object,
  declared: readonly DeclarationSite[],
): Pick<ListedRoute, 'skips' | 'because'> | undefined {
  const site = declared.findLast(({ skips }) => skips.length > 0);
  if (site === undefined) return undefined;
  const skips = skipText(site);
  const because = [...lineageOf(type), handler].map((target) => declaredOn(target).because).findLast(Boolean);
  return because === undefined ? { skips } : { skips, because };
}

/** The jobs of a queue, which `@JobRateLimit` and `@Limited` limit. */
function jobsOf(type: HandlerClass, parts: RouteParts): ListedRoute[] {
  const queue = PROCESSORS.map((key) => read(key, type)).find((found) => found !== undefined) as
    | { readonly name?: unknown }
    | undefined;
  if (queue === undefined) return [];
  const names = (read('nestjs-sluice:job-limits', type) ?? []) as readonly string[];
  const declared = `@JobRateLimit of ${classNameOf(type)}`;
  return [
    {
      kind: 'job',
      route: listed(queue.name) || classNameOf(type),
      controller: classNameOf(type),
      handler: 'process',
      limits: [
        ...names.map((name) => ({ name, key: 'a function', declared })),
        ...methodLimitsOf(parts.classes.handlers(type).get('process'), parts),
      ],
      functions: [],
      unlimited: false,
    },
  ];
}
