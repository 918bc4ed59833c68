import type { ExecutionContext, Type } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { GraphQLResolveInfo, GraphQLSchema } from 'graphql';
import type { Phase } from '../../app/config/common-limit-options.js';
import { RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { configError } from '../../engine/errors/errors.js';
import { logger } from '../../engine/errors/logger.js';
import { graphqlMessages } from '../../engine/errors/messages/graphql.js';
import { Answers } from '../../nest/request/answers.js';
import { runOf } from '../../nest/request/call-run.js';
import { giveBack } from '../../nest/request/charges.js';
import { Completions } from '../../nest/request/completions.js';
import { DeniedAddresses } from '../../nest/request/denied-addresses.js';
import { LimitedRequest } from '../../nest/request/limited-request.js';
import { keepRequest, requestOfCall } from '../../nest/request/requests.js';
import { RequestCheck } from '../../nest/request/request-check.js';
import { RequestLimiter } from '../../nest/request/request-limiter.js';
import { Transports } from '../../nest/request/transports.js';
import { boundGuards, GuardCheck } from '../../app/rules/guard-check.js';
import { HandlerClasses } from '../../app/rules/handler-classes.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import { RouteRules } from '../../app/rules/route-rules.js';
import { callOf } from '../../app/transports/read-request.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { Store } from '../../storage/stores/store.js';
import type { QueryCostSettings } from './cost/cost-options.js';
import { type OperationResult, QueryCosts } from './cost/query-costs.js';
import { callArguments, infoOf, OperationInfo, ResolvedFields, rootFieldsOf, sourceOf } from './root-fields.js';
import { JointCheck } from './joint-check.js';
import { keepOperation, knownOperation, Operation } from './operation.js';
import type { OperationSource } from './operation-source.js';

/** The type names under which Nest's decorators register root fields. */
const ROOTS = { query: 'Query', mutation: 'Mutation', subscription: 'Subscription' } as const;

/** Finds the services that the check of operations uses. Throws `RateLimitConfigError` for an invalid limit of the cost. */
export function operationServices(find: <T>(token: Type<T> | symbol) => T, cost: QueryCostSettings | undefined) {
  const answers = find(Answers);
  return {
    limiter: find(RequestLimiter),
    registry: find(RouteRulesRegistry),
    transports: find(Transports),
    answers,
    deniedAddresses: find(DeniedAddresses),
    check: new JointCheck(find(RequestCheck), answers, find(Completions), find<Store>(RATE_LIMIT_STORE)),
    fields: new ResolvedFields(find(HandlerClasses), find(GuardCheck)),
    /** `undefined` if operations cost nothing. */
    costs: cost && new QueryCosts(cost, find(LimitRegistry), 'RateLimitGraphqlModule: cost.limit'),
  };
}

type OperationServices = ReturnType<typeof operationServices>;

/** Serves as the handler of an operation, which has none. */
function operation(): void {}

const NO_ARGUMENTS = Object.freeze({});

/** No limits are declared for an operation itself. */
const NO_RULES = new RouteRules([], false);

/** Decides the limits of all fields of an operation together, before any of them runs. */
export class Operations {
  private made: OperationServices | undefined;

  /** Finds the services once all modules are initialized. */
  open: () => OperationServices = () => {
    throw configError('SLUICE_NO_MODULE', graphqlMessages.noRateLimitModule());
  };

  private get services(): OperationServices {
    return (this.made ??= this.open());
  }

  /** Loads the services and returns itself. Throws `RateLimitConfigError` for an invalid limit. */
  ready(): this {
    void this.services;
    return this;
  }

  /** Validates the directives of a schema. Throws `RateLimitConfigError`. */
  checkSchema(schema: GraphQLSchema): void {
    this.services.costs?.check(schema);
  }

  /** Starts the check of an operation. If its decision rejects, the operation must not run. */
  begin(source: OperationSource): Operation {
    const before = knownOperation(source);
    return before === undefined || before.isEnded ? this.make(source) : before;
  }

  /**
   * Ends an operation that was not rejected: returns the units that its fields didn't use, and settles its cost.
   *
   * @param result `undefined` if only parts of it are known
   */
  end(operation: Operation, result: OperationResult | undefined): void {
    this.giveBack(operation);
    this.settle(operation, result);
  }

  /** Returns the units that the fields of an operation didn't use. None of the fields may begin after that. */
  giveBack(operation: Operation): void {
    operation.isEnded = true;
    for (const field of operation.fields.values()) {
      if (!operation.begun.has(field)) giveBack(field.charges).catch(logFailure);
    }
  }

  settle(operation: Operation, result: OperationResult | undefined): void {
    const { cost, whole } = operation;
    if (cost === undefined) return;
    // A rejected operation didn't run.
    const report = this.services.costs!.settled(cost, whole, operation.isRefused ? { data: undefined } : result);
    if (!operation.isRefused) operation.report = report;
  }

  /**
   * Called when the guard receives a call. Returns a promise if the decision has to be awaited; it rejects if a limit rejects. Calls that
   * were decided are marked as checked.
   */
  beforeGuards(context: ExecutionContext): Promise<void> | undefined {
    const info = infoOf(context);
    if (info === undefined) return undefined;
    const source = sourceOf(context, info);
    let operation = knownOperation(source) ?? this.make(source);
    // If the same field comes again, it is another operation with the same context; or a second guard sees the same call.
    const isAgain = info.path.prev === undefined && operation.hasBegun(info.path.key);
    if (isAgain && requestOfCall(info) === undefined) operation = this.make(source);
    if (operation.isDecided) return this.join(operation, context, info);
    return operation.decision!.then(() => this.join(operation, context, info));
  }

  /** The same check, after all guards of the call. */
  afterGuards(context: ExecutionContext): Promise<void> | undefined {
    const info = infoOf(context);
    const operation = info && knownOperation(sourceOf(context, info));
    if (operation?.isDecided !== true || info!.path.prev !== undefined) return undefined;
    const field = operation.fields.get(String(info!.path.key));
    const waits = field !== undefined && (operation.later.has(field) || isUndecided(field));
    const { laterCost } = operation;
    if (laterCost !== undefined) return waits ? laterCost.then(() => this.decideLater(operation, field)) : laterCost;
    const isCosted = operation.cost !== undefined && !operation.knowsUser && this.services.costs!.needsUser;
    return waits || isCosted ? this.decideLater(operation, field, isCosted) : undefined;
  }

  /** Decides the limits that had to wait for guards, after one of the fields has passed them. */
  private decideLater(operation: Operation, field: LimitedRequest | undefined, isCosted = false): Promise<void> {
    const known = field && operation.later.get(field);
    if (known !== undefined) return known;
    const waiting = this.waitingWith(operation, field);
    const decision = this.decide(operation, ['authenticated'], waiting, isCosted);
    decision.catch(() => undefined);
    for (const each of waiting) operation.later.set(each, decision);
    if (isCosted) operation.laterCost = decision;
    return decision;
  }

  /**
   * The fields that can be decided after one of them has passed its guards: all of them if the guards have found a user, otherwise those
   * with the same guards, which won't find one either.
   */
  private waitingWith(operation: Operation, field: LimitedRequest | undefined): LimitedRequest[] {
    const { whole, fields } = operation;
    const waiting = [...fields.values()].filter((each) => isUndecided(each) && !operation.later.has(each));
    if (hasUser(whole.begin(whole.context))) return waiting;
    return field === undefined ? [] : waiting.filter((each) => each === field || hasSameGuards(each, field));
  }

  private make(source: OperationSource): Operation {
    const operation = new Operation(source, this.standIn(source));
    keepOperation(operation);
    operation.decision = this.decideFirst(operation);
    operation.decision.catch(() => undefined);
    return operation;
  }

  private async decideFirst(operation: Operation): Promise<void> {
    const { whole } = operation;
    const { deniedAddresses, answers } = this.services;
    await this.translated(whole, async () => {
      if (deniedAddresses.mayRefuse && deniedAddresses.refuses(whole, whole)) throw answers.denied(whole);
    });
    this.readFields(operation);
    operation.cost = this.services.costs?.of(operation.source);
    operation.knowsUser = hasUser(whole);
    const phases: Phase[] = operation.knowsUser ? ['guard', 'authenticated'] : ['guard'];
    await this.decide(operation, phases, [...operation.fields.values()]);
    operation.isDecided = true;
  }

  private async decide(
    operation: Operation,
    phases: readonly Phase[],
    fields: readonly LimitedRequest[],
    isCosted = true,
  ): Promise<void> {
    const { whole, source, cost } = operation;
    const { check, costs } = this.services;
    for (const field of fields) field.begin(field.context);
    // Without a cost of its own, the operation gets the decision of its fields.
    const answered = cost === undefined ? whole : this.standIn(source);
    const extra = isCosted && cost !== undefined ? costs!.asked(cost, phases) : undefined;
    try {
      await this.translated(whole, () => check.decide(phases, fields, whole, extra, answered));
    } catch (error) {
      if (extra !== undefined && extra.rules.length > 0) {
        operation.isRefused = true;
        operation.report = costs!.refused(cost!, answered);
      }
      throw error;
    }
    operation.held();
    for (const field of fields) {
      field.guardCheck = true;
      if (phases.includes('authenticated')) field.lastCheck = true;
    }
  }

  /** Creates a request for each query, mutation or subscription that has limits. Events of a subscription don't count as calls. */
  private readFields(operation: Operation): void {
    const { source } = operation;
    for (const [key, selected] of rootFieldsOf(source)) {
      const resolved = this.services.fields.of(ROOTS[source.operation.operation], selected.node.name.value);
      if (resolved === undefined) continue;
      const { type, handler } = resolved;
      const routeRules = this.services.registry.of(type, handler);
      if (routeRules.isEmpty) continue;
      const args = callArguments(source, selected);
      if (args === undefined) continue;
      operation.fields.set(key, this.requestOf(args, type as Type, handler, routeRules));
    }
  }

  /** Lets a field pass that was decided with its operation. */
  private join(operation: Operation, context: ExecutionContext, info: GraphQLResolveInfo): undefined {
    const request = info.path.prev === undefined ? operation.fields.get(String(info.path.key)) : undefined;
    if (request === undefined || request.handler !== context.getHandler() || operation.begun.has(request)) return;
    operation.begun.add(request);
    request.begin(context);
    keepRequest(callOf(request.reader, context), request, true);
    const run = runOf(context.getArgs());
    if (run === undefined) return;
    request.run = run;
    request.completion?.follow(run);
    operation.follow(run);
  }

  private standIn(source: OperationSource): LimitedRequest {
    const args = [undefined, NO_ARGUMENTS, source.context, new OperationInfo(source)];
    return this.requestOf(args, Operations as Type, operation, NO_RULES);
  }

  private requestOf(args: unknown[], type: Type, handler: Function, routeRules: RouteRules): LimitedRequest {
    const context = new ExecutionContextHost(args, type, handler);
    context.setType('graphql');
    const { transports, limiter } = this.services;
    return new LimitedRequest(context, type, handler, transports.of(context), routeRules, limiter);
  }

  /** Runs a check and turns a rejection into the error that GraphQL returns. */
  private async translated(request: LimitedRequest, check: () => Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      throw await this.services.answers.translate(request, error);
    }
  }
}

function isUndecided({ routeRules, lastCheck }: LimitedRequest): boolean {
  return routeRules.continuesAfterGuards && lastCheck === undefined;
}

function hasSameGuards(one: LimitedRequest, other: LimitedRequest): boolean {
  const [guards, others] = [one, other].map(({ type, handler }) => [...boundGuards(type), ...boundGuards(handler)]);
  return guards!.length === others!.length && guards!.every((guard, index) => guard === others![index]);
}

function hasUser({ parts: { request } }: LimitedRequest): boolean {
  return request?.user !== undefined && request.user !== null;
}

function logFailure(error: unknown): void {
  logger.error(reasonOf(error), error instanceof Error ? error.stack : undefined);
}
