import { Inject, Injectable } from '@nestjs/common';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_LISTS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { Lists } from '../../app/overrides/lists/lists.js';
import { Overrides } from '../../app/overrides/overrides.js';
import { HandlerClasses } from '../../app/rules/handler-classes.js';
import { LimitRegistry } from '../../app/rules/limit-registry.js';
import { RouteRulesRegistry } from '../../app/rules/route-rules-registry.js';
import type { Rule } from '../../app/rules/rule.js';
import { Transports } from '../request/transports.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import { CounterReader } from './counter-reader.js';
import { describe } from './described-limit.js';
import type { ExplainedLimit, ExplainedOutcome, Explanation, LimitStatus } from './explanation.js';
import { type Findings, LimitsInQuestion } from './limits-in-question.js';
import { deniedAddress, withList } from './list-decisions.js';
import { readQuestion } from './question.js';
import { reasons } from './reasons.js';
import type { Group } from './trace.js';

/** Explains the effect of limits on a request. Charges and writes nothing, and reports nothing to telemetry. */
@Injectable()
export class Explainer {
  private readonly limits: LimitsInQuestion;

  constructor(
    registry: LimitRegistry,
    routes: RouteRulesRegistry,
    classes: HandlerClasses,
    transports: Transports,
    private readonly overrides: Overrides,
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
    @Inject(RATE_LIMIT_LISTS) private readonly lists: Lists,
  ) {
    this.limits = new LimitsInQuestion(registry, routes, classes, transports, settings);
  }

  async explain(asked: unknown): Promise<Explanation> {
    const question = readQuestion(asked);
    // Errors in the question are reported even without Redis.
    return this.explained(await this.limits.of(question), question.kind !== 'limit');
  }

  explainRule(rule: Rule, key: string, ip: string | undefined): Promise<Explanation> {
    return this.explained(this.limits.ofRule(rule, key, ip), false);
  }

  private async explained(findings: Findings, ofRequest: boolean): Promise<Explanation> {
    const { subject, groups, leftOut, functions, client, ask } = findings;
    const { overrides, lists, settings, store } = this;
    const reader = new CounterReader(store.unobserved, settings.timeoutMs, ofRequest);
    const began = performance.now();
    // If a read is already in progress, this could take as long as two reads.
    const failure = await overrides.readIfPossible(settings.timeoutMs);
    reader.spentMs = performance.now() - began;
    reader.failure = failure?.message;
    const weighed = await Promise.all(
      groups.map(async ({ rules, failure: failed }) => {
        const all = await Promise.all(rules.map(async ({ rule }) => withList(await ask(rule), lists, client)));
        const limits = rules.map(async (traced, index) => {
          const asked = all[index]!;
          const [reading, ofCandidate] = await Promise.all([reader.read(asked, all), reader.readCandidate(asked)]);
          const limit = describe(traced, asked, { ...reading, ofCandidate }, overrides, settings.prefix);
          return { limit, refuses: asked.refuses === true, unread: reading.unread };
        });
        return { limits: await Promise.all(limits), failure: failed };
      }),
    );
    const explained = weighed.flatMap(({ limits }) => limits);
    const unread = failure?.message ?? explained.find((each) => each.unread !== undefined)?.unread;
    const isOpen = functions.some(({ asked }) => !asked);
    const denied = settings.shadow ? undefined : deniedAddress(lists, client);
    return {
      subject,
      at: Date.now(),
      outcome: denied ?? outcomeOf(weighed, isOpen),
      limits: explained.map(({ limit }) => limit),
      leftOut: leftOut.map(({ rule: _, ...each }) => each),
      functions: [...functions],
      ...(unread === undefined ? {} : { unread }),
    };
  }
}

type WeighedGroup = Pick<Group, 'failure'> & { readonly limits: readonly Weighed[] };

/** A limit, with a flag that is true if it rejects a request because something is missing, before the limit is checked. */
interface Weighed {
  readonly limit: ExplainedLimit;
  readonly refuses: boolean;
}

/**
 * The outcome of a request whose limits are checked in consecutive groups. If a limit rejects, its group charges nothing, and later groups
 * are not checked.
 *
 * @param unknown true if further limits may apply
 */
function outcomeOf(groups: readonly WeighedGroup[], unknown: boolean): ExplainedOutcome {
  let delayMs = 0;
  let open: string | undefined;
  for (const { limits: group, failure } of groups) {
    if (failure !== undefined) return { verdict: 'fails', ...STOPPED, reason: failure };
    const stopped = stoppedBy(group);
    if (stopped !== undefined) return stopped;
    const denied = deniedBy(group);
    if (denied !== undefined) return denied;
    const refusing = group.filter(({ limit }) => isEnforced(limit) && limit.decision?.allowed === false);
    const sure = refusing.filter(({ limit }) => limit.status === 'asked');
    if (sure.length > 0) {
      const waits = sure.map(({ limit }) => limit.decision!.retryAfterMs);
      const retryAfterMs = waits.includes(null) ? null : Math.max(...(waits as number[]));
      return { verdict: 'refused', refusedBy: sure.map(({ limit }) => limit.name), retryAfterMs, delayMs: 0 };
    }
    const enforced = group.map(({ limit }) => limit).filter(isEnforced);
    const unsure = enforced.find((limit) => isOpen(limit));
    if (unsure !== undefined) open ??= `'${unsure.name}': ${unsure.reason ?? ''}`;
    delayMs += Math.max(0, ...enforced.map(({ decision }) => decision?.delayMs ?? 0));
  }
  if (unknown) open ??= reasons.dependsOnFunctions();
  const passed = { refusedBy: [], retryAfterMs: 0, delayMs };
  return open === undefined ? { verdict: 'allowed', ...passed } : { verdict: 'unknown', ...passed, reason: open };
}

/** The statuses of limits that affect the outcome. */
const ENFORCED: readonly LimitStatus[] = ['asked', 'listed', 'depends on the request'];
const STOPPED = { refusedBy: [], retryAfterMs: null, delayMs: 0 };

/** The reason why a request ends before its limits are checked: a failing function of the app, or a missing key. */
function stoppedBy(group: readonly Weighed[]): ExplainedOutcome | undefined {
  const first = group.find(({ limit, refuses }) => refuses || limit.status === 'fails');
  if (first === undefined) return undefined;
  const { name, status, reason = '' } = first.limit;
  const stopped = { ...STOPPED, reason: `'${name}': ${reason}` };
  return status === 'fails' ? { verdict: 'fails', ...stopped } : { verdict: 'refused', ...stopped, refusedBy: [name] };
}

/** If a list denies in place of one limit, the others are not checked. */
function deniedBy(group: readonly Weighed[]): ExplainedOutcome | undefined {
  const denying = group
    .map(({ limit }) => limit)
    .filter((limit) => isEnforced(limit) && limit.status === 'listed' && limit.decision?.allowed === false);
  const list = denying[0]?.list;
  return list && { verdict: 'denied', ...STOPPED, refusedBy: denying.map(({ name }) => name), list };
}

/** Returns true if a limit can reject or delay a request. */
function isEnforced({ mode, status }: ExplainedLimit): boolean {
  return mode.mode === 'enforce' && ENFORCED.includes(status);
}

/** Returns true if its decision is unknown. */
function isOpen({ status, decision }: ExplainedLimit): boolean {
  return decision === undefined || (status === 'depends on the request' && !decision.allowed);
}
