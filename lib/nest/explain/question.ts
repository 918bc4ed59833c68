import type { Type } from '@nestjs/common';
import type { LimitDefinition } from '../../app/config/limit-definition.js';

/** A question about a limit. */
export interface LimitQuery {
  /** The limit: its name, or its definition. */
  limit: string | LimitDefinition;
  /** The key of the counter, such as `'tenant:acme'`, in the form that `consume` takes and a `KeyResolver` returns. */
  key: string;
  /** The keys of its parent limits by name, if any: `{ team: 't1', org: 'o1' }`. */
  within?: Readonly<Record<string, string>> | undefined;
  /**
   * Units: a whole number >= 0.
   * @default the limit's own cost, or 1
   */
  cost?: number;
  /**
   * The tenant, for a limit with `share`, in the form that `consume` takes.
   * @default none: explains the total of all tenants
   */
  share?: string;
  /**
   * The client's address, for lists of addresses.
   * @default none, as in calls from code
   */
  ip?: string;
}

/** A question about a route, without a request. */
export interface RouteQuery {
  /** The class: a controller, a resolver or a gateway; or its name. */
  controller: string | Type;
  /** The name of its method. */
  handler: string;
  /**
   * The caller: an identity such as `'ip:203.0.113.7'`; several, such as `['user:42', 'ip:203.0.113.7']`, of which each limit uses the
   * first that its `key` can produce; or identities per limit name, such as `{ api: 'tenant:acme' }`. The first address among them is the
   * client's address, which is also looked up in lists.
   * @default unknown: only limits with key `'global'` have a state
   */
  key?: string | readonly string[] | Readonly<Record<string, string>>;
  /**
   * The units, for limits whose `cost` is a function: a whole number >= 1.
   * @default it depends on the request
   */
  cost?: number;
  /**
   * The tenant, for limits with `share`, in the form that their `by` returns.
   * @default depends on the request: explains the total of all tenants
   */
  share?: string;
}
