import type { ExecutionContext } from '@nestjs/common';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { configError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { identityOfShown } from '../../engine/limits/hierarchy.js';
import { findEarly } from '../request/requests.js';
import { Transports } from '../request/transports.js';
import { HandlerClasses, type Handler } from '../../app/rules/handler-classes.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { classNameOf, type HandlerClass } from '../../app/rules/namespaces.js';
import type { LimitSource } from '../../app/rules/by-request/limit-sources.js';
import type { RouteRules } from '../../app/rules/route-rules.js';
import { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import { refuseImpossibleKey } from '../../app/rules/possible-keys.js';
import { levelsOf } from '../../app/rules/resolve/call-entries.js';
import type { Rule } from '../../app/rules/rule.js';
import { addressOf, partsOf } from '../../app/transports/read-request.js';
import { askedFromCode, type AskedLimit, askedOfRoute, ExplainedRequest } from './asked-limit.js';
import type { ExplainedFunction, ExplainedSubject } from './explanation.js';
import { askSources, type Group, groupsOf, Origins, trace, type Trace, unaskedSources } from './trace.js';
import { Identities } from './identities.js';
import { type AskingClient, CODE } from './list-decisions.js';
import { type LimitQuery, LOCATION, type Question, type RouteQuery } from './question.js';
import { reasons } from './reasons.js';
import { isHandler } from '../../app/rules/route-names.js';

/** The result of resolving a question, before counters are read. */
export interface Findings {
  readonly subject: ExplainedSubject;
  /** The limits that are checked, in consecutive groups. */
  readonly groups: readonly Group[];
  readonly leftOut: Trace['leftOut'];
  readonly functions: readonly ExplainedFunction[];
  /** The client to look up in lists. */
  readonly client: AskingClient;
  readonly ask: (rule: Rule) => AskedLimit | Promise<AskedLimit>;
}

/**
 * Finds the limits that a question is about, the identities that they count, and the places of their declarations. Doesn't read counters.
 */
export class LimitsInQuestion {
  private readonly origins: Origins;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly routes: RouteRulesRegistry,
    private readonly classes: HandlerClasses,
    private readonly transports: Transports,
    private readonly settings: RateLimitSettings,
  ) {
    this.origins = new Origins(registry);
  }

  /** Resolves a question. Throws or rejects with `RateLimitConfigError` if it refers to anything unknown. */
  of(question: Question): Findings | Promise<Findings> {
    if (question.kind === 'request') return this.ofRequest(question.context);
    return question.kind === 'limit' ? this.ofLimit(question.query) : this.ofRoute(question.query);
  }

  /** Resolves a limit whose rule is known. A nested key has the form in which it is displayed: 'o1/t1/u1'. */
  ofRule(rule: Rule, key: string, ip: string | undefined): Findings {
    const identity = rule.isNested ? identityOfShown(key, rule.ancestors.length) : key;
    const costs = new Map([[rule, rule.fixedCost]]);
    return this.ofRules([rule], () => identity, costs, { ip });
  }

  private ofLimit({ limit, key, within, cost, share, ip }: LimitQuery): Findings {
    const declaration = { location: LOCATION, namespace: '', inCall: true };
    const rules = typeof limit === 'string' ? this.named(limit) : [this.registry.rule(limit, declaration)];
    if (share !== undefined && !rules.some((rule) => rule.settings.trait?.option === 'share')) {
      throw configError('SLUICE_UNSUPPORTED_CALL', messages.noShare(rules[0]!.name));
    }
    refuseImpossibleKey(rules, key, LOCATION);
    const identities = new Map<Rule, string>();
    const costs = new Map<Rule, number>();
    for (const each of rules) {
      const levels = levelsOf(each, key, { within, cost: cost ?? each.fixedCost, hasCost: cost !== undefined });
      for (const { rule, key: own, identity, cost: units } of levels) {
        if (rule !== each) refuseImpossibleKey([rule], own, LOCATION, `within.${rule.name}`);
        identities.set(rule, identity);
        costs.set(rule, units);
      }
    }
    return this.ofRules([...identities.keys()], (rule) => identities.get(rule), costs, { share, ip });
  }

  private ofRules(
    rules: readonly Rule[],
    identityOf: (rule: Rule) => string | undefined,
    costs: ReadonlyMap<Rule, number>,
    { share, ip }: Partial<Record<'share' | 'ip', string | undefined>>,
  ): Findings {
    const group = rules.map((rule) => ({ rule, origin: this.origins.ofNamed(rule, LOCATION), replaces: [] }));
    return {
      subject: { kind: 'limit', limit: rules[0]!.name },
      groups: [{ rules: group, failure: undefined }],
      leftOut: [],
      functions: [],
      client: ip === undefined ? CODE : { address: ip, isChecked: true },
      ask: (rule) => askedFromCode(rule, identityOf(rule), costs.get(rule)!, share),
    };
  }

  private ofRoute(query: RouteQuery): Findings {
    const { type, handler } = findRoute(query, this.classes);
    const routeRules = this.routes.of(type, handler);
    const traced = trace(routeRules.declared, new Map(), this.origins);
    const { inForce } = traced;
    const identities = new Identities(query.key, this.settings.ipv6Prefix);
    if (!routeRules.hasSources) {
      identities.refuseOthers(inForce.map(({ rule }) => rule.name));
      identities.refuseImpossible(inForce.map(({ rule }) => rule));
    }
    const grouped = groupsOf(routeRules, traced, {});
    const besides = rulesBeside(grouped.groups);
    return {
      subject: { kind: 'route', controller: classNameOf(type), handler: query.handler },
      ...grouped,
      functions: unaskedSources(routeRules),
      client: { address: identities.address, isChecked: looksAtAddresses(routeRules) },
      ask: (rule) => askedOfRoute(rule, identities, query, besides(rule)),
    };
  }

  private async ofRequest(context: ExecutionContext): Promise<Findings> {
    const type = context.getClass<unknown>() as HandlerClass;
    const handler = context.getHandler();
    const routeRules = this.routes.of(type, handler);
    const parts = partsOf(this.transports.of(context), context);
    const { answers, functions } = await askSources(routeRules, context);
    const { traced, conflict } = this.traceOf(routeRules, answers);
    const asksLater = routeRules.hasSources && routeRules.waitsForGuards(parts);
    const wasEarly = findEarly(parts.request) !== undefined;
    const method = [...this.classes.handlers(type)].find(([, each]) => each === handler)?.[0] ?? handler.name;
    const subject = { kind: 'request', controller: classNameOf(type), handler: method } as const;
    const failure = functions.find(({ reason }) => reason !== undefined)?.reason ?? conflict;
    const grouped = groupsOf(routeRules, traced, { asksLater, wasEarly, failure });
    const besides = rulesBeside(grouped.groups);
    const request = new ExplainedRequest(context, parts);
    return {
      subject: { ...subject, transport: context.getType<string>() },
      ...grouped,
      functions,
      client: { address: addressOf(parts), isChecked: wasEarly || looksAtAddresses(routeRules) },
      ask: (rule) => request.asked(rule, besides(rule)),
    };
  }

  /** The limits that apply to a request. If those of functions conflict with others, the limits without them, and the conflict. */
  private traceOf(
    routeRules: RouteRules,
    answers: ReadonlyMap<LimitSource, readonly Rule[]>,
  ): { traced: Trace; conflict?: string } {
    try {
      return { traced: trace(routeRules.declared, answers, this.origins) };
    } catch (error) {
      return { traced: trace(routeRules.declared, new Map(), this.origins), conflict: reasons.sourceFailed(error) };
    }
  }

  /** The limits with a name: the one of `define` or `forFeature`, and the one of the module's `limits`. */
  private named(name: string): Rule[] {
    const rules = this.registry.named.map(({ rule }) => rule);
    const found = rules.filter((rule) => rule.name === name);
    if (found.length > 0) return found;
    const known = [...new Set(rules.map((rule) => rule.name))];
    throw configError(
      'SLUICE_UNKNOWN_LIMIT',
      messages.unnamedLimit(LOCATION, name, known, this.registry.choosesByRequest),
    );
  }
}

/** Returns true if the guard checks denied addresses, which a route can avoid with `@SkipRateLimit()`. */
function looksAtAddresses({ isEmpty, skipsAll }: RouteRules): boolean {
  return !isEmpty || !skipsAll;
}

function rulesBeside(groups: readonly Group[]): (rule: Rule) => readonly Rule[] {
  const groupOf = new Map<Rule, readonly Rule[]>();
  for (const group of groups) {
    const rules = group.rules.map(({ rule }) => rule);
    for (const rule of rules) groupOf.set(rule, rules);
  }
  return (rule) => groupOf.get(rule)!;
}

/** Finds the route of a question. Throws `RateLimitConfigError` with a list of the existing ones. */
function findRoute(
  { controller, handler }: RouteQuery,
  classes: HandlerClasses,
): { type: HandlerClass; handler: Handler } {
  const known = [...new Set(classes.known())].filter((type) => handlersOf(type, classes).size > 0);
  const found = known.filter((type) => type === controller || classNameOf(type) === controller);
  const [type, ...others] = found;
  if (others.length > 0) throw unknownRoute(messages.sameController(LOCATION, classNameOf(type!)));
  if (type === undefined) {
    const got = typeof controller === 'string' ? controller : classNameOf(controller);
    throw unknownRoute(messages.unknownController(LOCATION, got, known.map(classNameOf).toSorted()));
  }
  const handlers = handlersOf(type, classes);
  const method = handlers.get(handler);
  if (method === undefined) {
    throw unknownRoute(messages.unknownHandler(LOCATION, classNameOf(type), handler, [...handlers.keys()]));
  }
  return { type, handler: method };
}

function unknownRoute(message: string): RateLimitConfigError {
  return configError('SLUICE_UNKNOWN_ROUTE', message);
}

function handlersOf(type: HandlerClass, classes: HandlerClasses): Map<string, Handler> {
  return new Map([...classes.handlers(type)].filter(([, handler]) => isHandler(handler)));
}
