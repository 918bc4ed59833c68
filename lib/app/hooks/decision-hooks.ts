import { type ExecutionContext, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { Attempts, logger } from '../../engine/errors/logger.js';
import { hookMessages } from '../../engine/errors/messages/app-code.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { ownIdentity, shownIdentity } from '../../engine/limits/hierarchy.js';
import { toDecision } from '../../storage/stores/store-decision.js';
import type { Check, StoreDecision } from '../../storage/stores/store.js';
import { type UnnamedEvent, useOf } from '../../storage/telemetry/decision-event.js';
import { type DecisionListener, DecisionStream } from '../../storage/telemetry/decision-stream.js';
import { CallableClasses } from '../../engine/options/callable-classes.js';
import { isPromise } from '../../engine/util/awaitable.js';
import { type DecisionHooksOptions, HOOK_EXPECTED, type ObservedDecision } from './decision-hook.js';

/** The maximum number of counters to keep. The earliest to come near their limit are dropped first. */
const MAX_COUNTERS = 10_000;

/** A counter is no longer near its limit once its usage is below this fraction of `nearLimit`. */
const FAR = 0.5;

/** The counters that came near their limit. Each is reported once. */
class NearCounters {
  /** The time until which a counter isn't reported again, in milliseconds of the process's clock. */
  private readonly until = new Map<string, number>();

  /**
   * Returns true if a decision should be reported as near its limit. `cameNear`: true if this decision took the counter across the
   * threshold.
   */
  reports(entry: CheckEntry, decision: StoreDecision, cameNear: boolean): boolean {
    if (this.until.size === 0 && !cameNear) return false;
    const key = `${entry.limit.id} ${entry.identity}`;
    const until = this.until.get(key);
    if (until !== undefined) {
      const { before, nearFrom } = useOf(entry, decision);
      if (before < FAR * nearFrom || until <= performance.now()) this.until.delete(key);
    }
    if (!cameNear || this.until.has(key)) return false;
    if (this.until.size >= MAX_COUNTERS) this.until.delete(this.until.keys().next().value!);
    this.until.set(key, performance.now() + decision.resetAfterMs);
    return true;
  }
}

/** The names of hooks among the options. */
export const HOOKS = ['onDecision', 'onRefused', 'onNear'] as const satisfies (keyof DecisionHooksOptions)[];
type HookName = (typeof HOOKS)[number];

type DecisionFunction = (decided: ObservedDecision) => unknown;

/** The hooks of the module or of a limit, ready to be called. */
type BoundHooks = { readonly [Name in HookName]?: DecisionFunction };

/** The maximum depth of hooks that cause decisions, which call hooks again. */
const MOST_NESTED = 5;

/** Calls the hooks of the module and of limits with decisions. */
@Injectable()
export class DecisionHooks implements DecisionListener {
  private readonly attempts = new Attempts(logger);
  private readonly near = new NearCounters();
  private readonly observers: CallableClasses<'observe', DecisionFunction>;
  private ofAll: BoundHooks = NO_HOOKS;
  /** The number of running hooks. Each was called for a decision that the previous one caused. */
  private nested = 0;

  constructor(
    modules: ModuleRef,
    private readonly stream: DecisionStream,
  ) {
    this.observers = new CallableClasses(modules, 'observe', HOOK_EXPECTED);
  }

  /** Sets the hooks of the module. */
  observeAll(options: DecisionHooksOptions): void {
    this.ofAll = this.bind(options, 'RateLimitModule') ?? NO_HOOKS;
  }

  /** Turns hooks into functions; `undefined` if there are none. Apps without hooks have no listener. */
  bind(options: DecisionHooksOptions, location: string): object | undefined {
    const bound: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    for (const option of HOOKS) {
      const hook = options[option];
      if (hook !== undefined) bound[option] = this.observers.bind(hook, { location, option });
    }
    if (Object.keys(bound).length === 0) return undefined;
    this.stream.listener = this;
    return bound;
  }

  /** Resolves when all hook classes so far have an instance. */
  ready(): Promise<void> {
    return this.observers.ready();
  }

  decided(
    { origin }: Check,
    entries: readonly CheckEntry[],
    decisions: readonly StoreDecision[],
    events: readonly (UnnamedEvent | undefined)[],
  ): void {
    for (const [index, event] of events.entries()) {
      const own = (entries[index]!.limit.hooks ?? NO_HOOKS) as BoundHooks;
      const { ofAll } = this;
      if (event === undefined || (own === NO_HOOKS && ofAll === NO_HOOKS)) continue;
      this.call([own, ofAll], entries[index]!, decisions[index]!, event, origin);
    }
  }

  private call(
    hooks: readonly BoundHooks[],
    entry: CheckEntry,
    decision: StoreDecision,
    event: UnnamedEvent,
    origin: Check['origin'],
  ): void {
    const happened: Record<HookName, boolean> = {
      onDecision: true,
      onRefused: event.outcome !== 'allowed',
      onNear: hooks.some(({ onNear }) => onNear !== undefined) && this.near.reports(entry, decision, event.nearLimit),
    };
    let observed: ObservedDecision | undefined;
    for (const each of hooks) {
      for (const name of HOOKS) {
        const hook = each[name];
        if (hook === undefined || !happened[name]) continue;
        const owner = each === this.ofAll ? undefined : event.limit;
        if (this.nested === MOST_NESTED) {
          this.attempts.report(hookMessages.nested(name, owner), hookMessages.causesItself());
          continue;
        }
        observed ??= observedOf(entry, decision, event, origin);
        this.attempt(hook, observed, hookMessages.failed(name, owner));
      }
    }
  }

  /** Calls a hook without awaiting it. Its errors are logged once. */
  private attempt(hook: DecisionFunction, observed: ObservedDecision, message: string): void {
    this.nested++;
    try {
      const got = hook(observed);
      if (isPromise(got)) got.then(undefined, (error: unknown) => this.attempts.report(message, error));
    } catch (error) {
      this.attempts.report(message, error);
    } finally {
      this.nested--;
    }
  }
}

const NO_HOOKS: BoundHooks = Object.freeze(Object.create(null) as object);

function observedOf(
  entry: CheckEntry,
  answer: StoreDecision,
  { limit, outcome, cost, latencyMs }: UnnamedEvent,
  origin: Check['origin'],
): ObservedDecision {
  const context = origin?.context as ExecutionContext | undefined;
  return {
    limit,
    kind: entry.limit.isCandidate ? 'candidate' : entry.limit.shadow ? 'shadow' : 'enforced',
    outcome,
    // A copy, so that a hook can't change the decision.
    decision: { ...toDecision(answer) },
    cost,
    identity: shownIdentity(entry),
    key: ownIdentity(entry),
    latencyMs,
    route: origin?.route,
    class: context?.getClass() ?? undefined,
    handler: context?.getHandler() ?? undefined,
    context,
    request: origin?.request,
  };
}
