import type { Phase } from '../../app/config/common-limit-options.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';

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
