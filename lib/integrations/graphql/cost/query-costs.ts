import type { GraphQLSchema } from 'graphql';
import type { Phase } from '../../../app/config/common-limit-options.js';
import { limitInfo } from '../../../app/http/limit-info.js';
import { listedRules } from '../../../app/rules/listed-rules.js';
import { settle } from '../../../app/limiter/settlement.js';
import type { LimitRegistry } from '../../../app/rules/limit-registry.js';
import { rulesOfPhase, withAncestors } from '../../../app/rules/route-rules.js';
import type { Rule } from '../../../app/rules/rule.js';
import { Attempts, logger } from '../../../engine/errors/logger.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { graphqlMessages } from '../../../engine/errors/messages/graphql.js';
import { reasonOf } from '../../../engine/errors/reasons.js';
import { tighter } from '../../../engine/limits/decision.js';
import type { LimitedRequest } from '../../../nest/request/limited-request.js';
import type { Extra } from '../joint-check.js';
import type { OperationSource } from '../operation-source.js';
import type { QueryCostSettings } from './cost-options.js';
import { errorTreeOf, FieldTermsReader } from './field-terms.js';
import { OperationCost } from './operation-cost.js';

/** The cost of an operation as the client sees it, in `extensions.cost`. */
export interface CostReport {
  /** The points that were reserved before the operation ran. */
  readonly requestedQueryCost: number;
  /** The points that the operation was charged, based on the values it returned; `null` if it was rejected. */
  readonly actualQueryCost: number | null;
  /** The limit with the fewest points left among those that counted the operation; hidden limits are left out. */
  readonly throttleStatus?: ThrottleStatus;
}

/** The points of a client under one limit. */
export interface ThrottleStatus {
  /** The name of the limit. */
  readonly limit: string;
  /** The maximum number of points that an operation can cost. */
  readonly maximumAvailable: number;
  /** The points that are left. */
  readonly currentlyAvailable: number;
  /** The points that come back each second, on average. */
  readonly restoreRate: number;
}

/** The response to an operation, as the GraphQL server returned it. */
export interface OperationResult {
  /** `undefined` if nothing ran. */
  readonly data?: unknown;
  readonly errors?: unknown;
}

export interface RequestedCost {
  readonly points: number;
  readonly count: OperationCost;
}

export class QueryCosts {
  private readonly reader: FieldTermsReader;
  private readonly attempts = new Attempts(logger);
  private readonly rules: readonly Rule[];
  /** The rules that are charged the points. Limits above them may have a cost of their own. */
  private readonly counting: ReadonlySet<Rule>;

  /** Throws `RateLimitConfigError` if a limit is invalid. */
  constructor(
    private readonly settings: QueryCostSettings,
    registry: LimitRegistry,
    location: string,
  ) {
    this.reader = new FieldTermsReader(settings);
    const rules = listedRules(settings.limits, registry, { location, namespace: '' }, (rule) =>
      problemOf(rule, location),
    );
    this.rules = withAncestors(rules, location);
    this.counting = new Set(rules.flatMap((rule) => [rule, ...rule.ancestorsOfSameCost]));
  }

  /** Validates the directives of a schema. Throws `RateLimitConfigError`. */
  check(schema: GraphQLSchema): void {
    this.reader.check(schema);
  }

  /** True if a limit needs to know the user. */
  get needsUser(): boolean {
    return rulesOfPhase(this.rules, 'authenticated').length > 0;
  }

  /** The rules that the cost of an operation is checked against in these phases. */
  asked({ points }: RequestedCost, phases: readonly Phase[]): Extra {
    const rules = phases.flatMap((phase) => rulesOfPhase(this.rules, phase));
    return { rules, counting: this.counting, cost: points };
  }

  of(source: OperationSource): RequestedCost {
    const count = new OperationCost(source, this.reader, this.settings, this.attempts);
    return { points: count.requested(), count };
  }

  refused({ points }: RequestedCost, checked: LimitedRequest): CostReport {
    return this.report(points, null, checked);
  }

  /** Settles an operation by the values it returned (0 points if nothing ran), and reports the cost. Doesn't wait for the store. */
  settled(cost: RequestedCost, whole: LimitedRequest, result: OperationResult | undefined): CostReport {
    const actual = actualOf(cost, result);
    for (const charge of whole.charges) {
      if (charge.settled || !this.counting.has(charge.rule)) continue;
      charge.settled = true;
      settle(charge.store, { ...charge }, actual).catch(logFailure);
      // If the request turns out not to count, this is the maximum refund.
      charge.units = Math.min(actual, 2 * charge.limit.whole.quota);
    }
    return this.report(cost.points, actual, whole);
  }

  /** @param actual `null` if the operation was rejected */
  private report(requested: number, actual: number | null, { entries, result }: LimitedRequest): CostReport {
    const decisions = result?.decisions ?? [];
    const [first, ...others] = decisions.filter((_, index) => {
      const { rule, limit } = entries[index]!;
      return this.rules.includes(rule) && !limit.hidden;
    });
    const costs = { requestedQueryCost: requested, actualQueryCost: actual };
    if (first === undefined) return costs;
    const tightest = others.reduce(tighter, first);
    const { limit } = entries[decisions.indexOf(tightest)]!;
    const { quota, remaining } = tightest;
    // Only points that were taken are refunded.
    const back = actual === null || !tightest.allowed ? 0 : requested - actual;
    const rate = (quota / limitInfo(limit, Date.now()).windowMs) * 1000;
    return {
      ...costs,
      throttleStatus: {
        limit: tightest.limit,
        maximumAvailable: quota,
        currentlyAvailable: Math.min(quota, Math.max(0, remaining + back)),
        restoreRate: Number(rate.toPrecision(6)),
      },
    };
  }
}

/** The reason why a limit can't count points; `undefined` if it can. */
function problemOf({ name, settings, limit }: Rule, location: string): string | undefined {
  const { name: algo, leases } = limit.algorithm;
  if (leases !== undefined) return graphqlMessages.leased(location, name, algo);
  if (settings.count !== 'all') return graphqlMessages.countsSome(location, name);
  return settings.measure === undefined ? undefined : graphqlMessages.measures(location, name);
}

/** The points of a response; the expected points if the response is not available as a whole. */
function actualOf({ points, count }: RequestedCost, result: OperationResult | undefined): number {
  if (result === undefined) return points;
  const { data, errors } = result;
  if (data === undefined) return 0;
  return typeof data === 'object' && data !== null ? count.returned(data, errorTreeOf(errors)) : points;
}

function logFailure(error: unknown): void {
  logger.error(messages.storeFailed(reasonOf(error)), error instanceof Error ? error.stack : undefined);
}
