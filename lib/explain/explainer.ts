import { type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { LimitDefinition } from '../config/limit-definition.js';
import type { RateLimitSettings } from '../config/settings.js';
import { RATE_LIMIT_LISTS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../config/tokens.js';
import { RateLimitConfigError, RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { shareMessages } from '../errors/share-messages.js';
import { Lists } from '../overrides/lists/lists.js';
import { Overrides } from '../overrides/overrides.js';
import { withDeadline } from '../redis/deadline.js';
import { findEarly } from '../request/requests.js';
import { Transports } from '../request/transports.js';
import { HandlerClasses } from '../rules/handler-classes.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import { classNameOf, type HandlerClass } from '../rules/namespaces.js';
import { isSource, type Plan, type RuleSource } from '../rules/plan.js';
import { PlanRegistry } from '../rules/plan-registry.js';
import type { Rule } from '../rules/rule.js';
import { StoreLayer } from '../stores/layers/store-layer.js';
import type { Store } from '../stores/store.js';
import { addressOf, partsOf } from '../transports/read-request.js';
import { identityOfShown } from '../limits/hierarchy.js';
import { levelsOf } from '../limiter/levels.js';
import { type AskedLimit, askedFromCode, askedOfRequest, askedOfRoute, fixedCostOf } from './asked-limit.js';
import { CounterReader } from './counter-reader.js';
import { describe } from './described-limit.js';
import type { ExplainedFunction, ExplainedSubject, Explanation } from './explanation.js';
import type { LimitQuery, RouteQuery } from './question.js';
import { findRoute } from './find-route.js';
import { type Group, groupsOf } from './groups.js';
import { Identities } from './identities.js';
import { type AskingClient, CODE, deniedAddress, withList } from './list-decisions.js';
import { levelName, Origins } from './origins.js';
import { outcomeOf } from './outcome.js';
import { LOCATION, readQuestion } from './query.js';
import { reasons } from './reasons.js';
import { trace, type Trace, type TracedRule } from './trace.js';

/** What a question comes to, before counters are read. */
interface Findings {
  readonly subject: ExplainedSubject;
  /** The limits that are checked, in groups that follow each other. */
  readonly groups: readonly Group[];
  readonly leftOut: Trace['leftOut'];
  readonly functions: readonly ExplainedFunction[];
  /** Of whom lists are asked. */
  readonly client: AskingClient;
  readonly ask: (rule: Rule) => AskedLimit | Promise<AskedLimit>;
}

/** Tells what limits do to a request, and why. Charges and writes nothing, and tells nobody of what it sees. */
@Injectable()
export class Explainer {
  private readonly origins: Origins;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly plans: PlanRegistry,
    private readonly classes: HandlerClasses,
    private readonly transports: Transports,
    private readonly overrides: Overrides,
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    @Inject(RATE_LIMIT_LISTS) private readonly lists: Lists,
  ) {
    this.origins = new Origins(registry);
  }

  /** Explains a limit, a route or a request. Rejects with `RateLimitConfigError` for what it does not know. */
  async explain(asked: unknown): Promise<Explanation> {
    const question = readQuestion(asked);
    const { store } = this;
    const unobserved = store instanceof StoreLayer ? store.unobserved : store;
    const reader = new CounterReader(unobserved, this.settings.timeoutMs, question.kind !== 'limit');
    // What is wrong with the question is told without Redis.
    if (question.kind === 'request') return this.told(await this.ofRequest(question.context), reader);
    const findings = question.kind === 'limit' ? this.ofLimit(question.query) : this.ofRoute(question.query);
    return this.told(findings, reader);
  }

  /** @internal Explains a limit to code that has its rule, wherever it is declared. */
  explainRule(rule: Rule, key: string, ip: string | undefined): Promise<Explanation> {
    const { store } = this;
    const unobserved = store instanceof StoreLayer ? store.unobserved : store;
    // A key within others is written as it is shown: 'o1/t1/u1'.
    const identity = rule.isNested ? identityOfShown(key, rule.ancestors.length) : key;
    const findings = this.ofRules([rule], () => identity, { cost: rule.fixedCost, ip });
    return this.told(findings, new CounterReader(unobserved, this.settings.timeoutMs, false));
  }

  private async told(findings: Findings, reader: CounterReader): Promise<Explanation> {
    const { subject, groups, leftOut, functions, client, ask } = findings;
    const { overrides, lists, settings } = this;
    const began = performance.now();
    const failure = await this.readOverrides();
    reader.spentMs = performance.now() - began;
    reader.failure = failure?.message;
    const describing = { overrides, prefix: settings.prefix };
    const weighed = await Promise.all(
      groups.map(async ({ rules, failure: failed }) => {
        const all = await Promise.all(rules.map(async ({ rule }) => withList(await ask(rule), lists, client)));
        const limits = rules.map(async (traced, index) => {
          const asked = all[index]!;
          const [reading, ofCandidate] = await Promise.all([reader.read(asked, all), reader.readCandidate(asked)]);
          const limit = describe(traced, asked, { ...reading, ofCandidate }, describing);
          return { limit, refuses: asked.refuses === true, unread: reading.unread };
        });
        return { limits: await Promise.all(limits), failure: failed };
      }),
    );
    const told = weighed.flatMap(({ limits }) => limits);
    const unread = failure?.message ?? told.find((each) => each.unread !== undefined)?.unread;
    const isOpen = functions.some(({ asked }) => !asked);
    const denied = settings.shadow ? undefined : deniedAddress(lists, client);
    return {
      subject,
      at: Date.now(),
      outcome: denied ?? outcomeOf(weighed, isOpen),
      limits: told.map(({ limit }) => limit),
      leftOut: leftOut.map(({ rule: _, ...each }) => each),
      functions: [...functions],
      ...(unread === undefined ? {} : { unread }),
    };
  }

  /** A reading that was under way before may take the time of two. */
  private async readOverrides(): Promise<RateLimitStoreError | undefined> {
    try {
      return await withDeadline(this.overrides.readIfPossible(), this.settings.timeoutMs);
    } catch (error) {
      if (error instanceof RateLimitStoreError) return error;
      throw error;
    }
  }

  private ofLimit({ limit, key, within, cost, share, ip }: LimitQuery): Findings {
    const rules = typeof limit === 'string' ? this.named(limit) : [this.defined(limit)];
    if (share !== undefined && !rules.some((rule) => rule.settings.share)) {
      throw new RateLimitConfigError(shareMessages.notShared(rules[0]!.name));
    }
    const levels = rules.flatMap((rule) => levelsOf(rule, key, within));
    const identities = new Map(levels.map(({ rule, identity }) => [rule, identity]));
    return this.ofRules([...identities.keys()], (rule) => identities.get(rule), { cost, share, ip });
  }

  private ofRules(
    rules: readonly Rule[],
    identityOf: (rule: Rule) => string | undefined,
    { cost, share, ip }: Partial<Record<'share' | 'ip', string | undefined>> & { readonly cost: number | undefined },
  ): Findings {
    const group = rules.map((rule) => ({ rule, origin: this.origins.ofNamed(rule, LOCATION), replaces: [] }));
    return {
      subject: { kind: 'limit', limit: rules[0]!.name },
      groups: [{ rules: group, failure: undefined }],
      leftOut: [],
      functions: [],
      client: ip === undefined ? CODE : { address: ip, isChecked: true },
      ask: (rule) => askedFromCode(rule, identityOf(rule), cost ?? fixedCostOf(rule, rules), share),
    };
  }

  private ofRoute(query: RouteQuery): Findings {
    const { type, handler } = findRoute(query, this.classes);
    const plan = this.plans.of(type, handler);
    const traced = trace(plan.declared, new Map(), this.origins);
    const { leftOut } = traced;
    const inForce = this.withLevels(traced.inForce);
    const rules = inForce.map(({ rule }) => rule);
    const identities = new Identities(query.key, this.settings.ipv6Prefix);
    if (!plan.hasSources) identities.refuseOthers(inForce.map(({ rule }) => rule.name));
    const functions = sourcesOf(plan).map(({ origin }) => ({
      origin,
      asked: false,
      reason: reasons.functionUnasked(),
    }));
    return {
      subject: { kind: 'route', controller: classNameOf(type), handler: query.handler },
      ...groupsOf(plan, { inForce, leftOut }, {}),
      functions,
      client: { address: identities.address, isChecked: looksAtAddresses(plan) },
      ask: (rule) => askedOfRoute(rule, identities, query, rules),
    };
  }

  private async ofRequest(context: ExecutionContext): Promise<Findings> {
    const type = context.getClass<unknown>() as HandlerClass;
    const handler = context.getHandler();
    const plan = this.plans.of(type, handler);
    const parts = partsOf(this.transports.of(context), context);
    const { answers, functions } = await askSources(plan, context);
    const { leftOut, inForce: found } = trace(plan.declared, answers, this.origins);
    const traced = { leftOut, inForce: this.withLevels(found) };
    const rules = traced.inForce.map(({ rule }) => rule);
    const asksLater = plan.hasSources && plan.asksLater(parts);
    const wasEarly = findEarly(parts.request) !== undefined;
    const method = [...this.classes.handlers(type)].find(([, each]) => each === handler)?.[0] ?? handler.name;
    const subject = { kind: 'request', controller: classNameOf(type), handler: method } as const;
    return {
      subject: { ...subject, transport: context.getType<string>() },
      ...groupsOf(plan, traced, {
        asksLater,
        wasEarly,
        failure: functions.find(({ reason }) => reason !== undefined)?.reason,
      }),
      functions,
      client: { address: addressOf(parts), isChecked: wasEarly || looksAtAddresses(plan) },
      ask: (rule) => askedOfRequest(rule, context, parts, rules),
    };
  }

  /** What holds, with all that it is within: it is checked together. */
  private withLevels(traced: readonly TracedRule[]): TracedRule[] {
    const all = [...traced];
    for (const ancestor of traced.flatMap(({ rule }) => rule.ancestors)) {
      if (all.some(({ rule }) => rule === ancestor)) continue;
      all.push({ rule: ancestor, origin: this.origins.ofNamed(ancestor, LOCATION), replaces: [] });
    }
    return all;
  }

  /** The limits of a name: that of `define` or `forFeature`, and that of the module's `limits`. */
  private named(name: string): Rule[] {
    const rules = this.registry.named.map(({ rule }) => rule);
    const found = rules.filter((rule) => rule.name === name);
    if (found.length > 0) return found;
    const known = [...new Set(rules.map((rule) => rule.name))];
    throw new RateLimitConfigError(messages.unnamedLimit(LOCATION, name, known));
  }

  private defined(limit: LimitDefinition): Rule {
    return this.registry.rule(limit, { location: LOCATION, namespace: '' });
  }
}

/** Whether the guard looks at addresses, which `@SkipRateLimit()` exempts a route from. */
function looksAtAddresses({ isEmpty, skipsAll }: Plan): boolean {
  return !isEmpty || !skipsAll;
}

/** The functions of a route that still hold, and where they stand. */
function sourcesOf({ declared }: Plan): { source: RuleSource; origin: ExplainedFunction['origin'] }[] {
  const bare = Math.max(
    0,
    declared.findLastIndex(({ skips }) => skips === 'all'),
  );
  return declared.flatMap(({ specs, location }, index) => {
    if (index < bare) return [];
    const origin = { level: levelName(index, declared.length), location };
    return specs.filter(isSource).map((source) => ({ source, origin }));
  });
}

/** Asks the functions of a route. One that fails gives no limits here; its request fails. */
async function askSources(plan: Plan, context: ExecutionContext) {
  const answers = new Map<RuleSource, readonly Rule[]>();
  const functions: ExplainedFunction[] = [];
  for (const { source, origin } of sourcesOf(plan)) {
    try {
      const rules = source.rules(await source.ask(context));
      answers.set(source, rules);
      functions.push({ origin, asked: true, gave: rules.map(({ name }) => name) });
    } catch (error) {
      functions.push({ origin, asked: true, reason: reasons.sourceFailed(error) });
    }
  }
  return { answers, functions };
}
