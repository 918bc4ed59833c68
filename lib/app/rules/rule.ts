import type { Algorithm } from '../../engine/algorithms/algorithm.js';
import type { Anchor } from '../../engine/algorithms/anchor.js';
import type {
  Outcome,
  Phase,
  CommonLimitOptions,
  Count,
  OnMissingKey,
  OnMissingReader,
} from '../config/common-limit-options.js';
import type { AllCommonOptions } from '../config/limit-options.js';
import { type Measure, type MeasuredCost, measuredUnits } from '../config/measured-cost.js';
import { argumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { planMessages } from '../../engine/errors/messages/rates.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { MetBy } from '../../engine/limits/limit-feature.js';
import { identityWithin, NOBODY, ownIdentity } from '../../engine/limits/hierarchy.js';
import type { Priority } from '../../engine/limits/arguments.js';
import { andThen, type Awaitable } from '../../engine/util/awaitable.js';
import type { RateFunction } from '../config/limits-by-request.js';
import type { OnceLogger } from '../../engine/errors/logger.js';
import type { RequestTrait } from '../../storage/features/feature.js';
import type { IdentifyAddress } from '../key-resolvers/ip.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';

/** True if a limit needs the end of a request: to decide if the request counts, or to release a lease. */
export function waitsForEnd({ count, measure }: RuleSettings, algorithm: Algorithm | undefined): boolean {
  return count !== 'all' || measure !== undefined || algorithm?.leases !== undefined;
}

/** The values that a call from code specifies. */
export interface Call {
  readonly priority?: Priority | undefined;
  readonly share?: string | undefined;
  readonly anchor?: Anchor | null | undefined;
}

/** A limit as routes and code use it: its current version, its ancestors, and the options that don't belong to the algorithm. */
export class Rule {
  private effective: CompiledLimit;
  /** Only set while some keys have overrides. */
  private keyed: KeyedLimits | undefined;
  private listeners: (() => void)[] | undefined;
  /** The cost of a call from code, which has no request to derive a cost from. */
  readonly fixedCost: number;
  /** The default priority of a call from code. */
  readonly fixedPriority: Priority | undefined;
  /** @internal The defaults for values that requests and calls may specify. */
  readonly usual: MetBy;
  /** @internal Finds the rules of all ancestors; only set if there are any. */
  findAncestors: (() => readonly Rule[]) | undefined;
  /** @internal True if a route refers to it. For limits of the module and of routes this is known anyway. */
  isOnRoute = false;
  private knownAncestors: readonly Rule[] | undefined;

  constructor(
    /** The limit as it is configured. */
    readonly configured: CompiledLimit,
    readonly settings: RuleSettings,
    readonly ofAll?: Rule, // The rule of all routes, if this one is the part of one route.
  ) {
    this.effective = configured;
    const { cost, priority } = settings;
    this.fixedCost = typeof cost === 'number' ? cost : 1;
    this.fixedPriority = typeof priority === 'function' ? undefined : priority;
    this.usual = this.fixedPriority === undefined ? WITHOUT_PRIORITY : { priority: this.fixedPriority };
  }

  /** The limit that currently decides for all keys without overrides. */
  get limit(): CompiledLimit {
    return this.effective;
  }

  /** The limit that currently decides for a key, regardless of the limits it is nested in. */
  limitFor(identity: string): CompiledLimit {
    const { keyed } = this;
    return keyed === undefined ? this.limit : keyed.limitFor(ownIdentity({ limit: this.configured, identity }));
  }

  /** True if it has a parent, so that its counters are nested in those of the parent. */
  get isNested(): boolean {
    return this.configured.parent !== undefined;
  }

  /** The rules of all ancestors, the parent first. Throws `RateLimitConfigError`. */
  get ancestors(): readonly Rule[] {
    return (this.knownAncestors ??= this.findAncestors?.() ?? NONE);
  }

  /** The ancestors without a cost of their own. They are charged the same as this rule. */
  get ancestorsOfSameCost(): readonly Rule[] {
    const other = this.ancestors.findIndex(({ hasCost }) => hasCost);
    return other < 0 ? this.ancestors : this.ancestors.slice(0, other);
  }

  /** The identity of a counter, composed of the keys of each level. `found` returns the key of a level, if it has one. */
  identityAmong(found: (rule: Rule) => string | undefined): string {
    const own = found(this) ?? NOBODY;
    const [parent] = this.ancestors;
    if (parent === undefined) return own;
    return identityWithin({ limit: parent.configured, identity: parent.identityAmong(found) }, own);
  }

  /** True if it counts requests, and not only calls from code. */
  get countsRequests(): boolean {
    return this.isOnRoute || this.configured.namespace !== '';
  }

  /** True if each route has its own counter, and so its own rule. */
  get perRoute(): boolean {
    return this.settings.perRoute;
  }

  /** Returns true if another limit has the same default name, but a different function as its key, count or rate. */
  countsOtherwise({ settings: { key, count, rate, unnamed } }: Rule): boolean {
    const own = this.settings;
    if (!own.unnamed || !unnamed) return false;
    return (
      isOtherFunction(own.key.given, key.given) || isOtherFunction(own.count, count) || isOtherFunction(own.rate, rate)
    );
  }

  get name(): string {
    return this.configured.name;
  }

  /** The limit for calls that set no priority. */
  usualLimit(identity: string): CompiledLimit {
    return this.limitFor(identity).meet(this.usual);
  }

  /** Makes another limit of the same name decide, and others for some keys. */
  decideBy(limit: CompiledLimit, keyed?: KeyedLimits): void {
    if (limit === this.effective && keyed === undefined && this.keyed === undefined) return;
    this.effective = limit;
    this.keyed = keyed;
    this.listeners?.forEach((listener) => listener());
  }

  /** Registers a listener that is called when another limit becomes the deciding one. */
  onChange(listener: () => void): void {
    (this.listeners ??= []).push(listener);
  }

  get phase(): Phase {
    if (!this.isNested) return this.settings.phase;
    // All levels of a hierarchy are checked together.
    return [this, ...this.ancestors].some(({ settings }) => settings.phase === 'authenticated')
      ? 'authenticated'
      : this.settings.phase;
  }

  /** True if requests can have different costs. */
  get hasCost(): boolean {
    return this.settings.hasCost;
  }

  /** True if it needs the interceptor after the guards. */
  get needsInterceptor(): boolean {
    return this.phase === 'authenticated' || this.waitsForEnd || this.ancestors.some((rule) => rule.waitsForEnd);
  }

  /** True if it needs the end of a request: to decide if the request counts, or to release a lease. */
  get waitsForEnd(): boolean {
    return waitsForEnd(this.settings, this.limit.algorithm);
  }

  /** True if it needs the bytes or the duration of a request. */
  get measures(): boolean {
    const { count, measure } = this.settings;
    return measure !== undefined || typeof count === 'function';
  }

  /** True if units that a request was charged may have to be refunded. */
  get mayGiveBack(): boolean {
    return this.waitsForEnd || this.hasCost || this.limit.algorithm.queue !== undefined;
  }

  /** Returns true if a request with this outcome counts, or the number of units that it counts. */
  counts(outcome: Outcome): Awaitable<boolean | number> {
    const { count, measure } = this.settings;
    const counted =
      typeof count === 'function'
        ? count(outcome)
        : // A client that did not wait for the response must not be able to choose the outcome.
          count === 'all' || outcome.aborted || outcome.failed === (count === 'failed');
    if (measure === undefined) return counted;
    return andThen(counted, (is) => (is === true ? (measuredUnits(measure, outcome) ?? true) : is));
  }

  /** The limit for a call from code, which provides the value of the limit's trait. A call that only reads may omit it. */
  limitForCall(identity: string, call: Call, looks = false): CompiledLimit {
    const { trait } = this.settings;
    if (call.anchor !== undefined && trait?.option !== 'anchor') {
      throw argumentError('SLUICE_UNSUPPORTED_CALL', planMessages.notAnchored(this.name));
    }
    if (call.share !== undefined && trait?.option !== 'share') {
      throw argumentError('SLUICE_UNSUPPORTED_CALL', messages.noShare(this.name));
    }
    const limit = this.limitFor(identity);
    const { priority = this.fixedPriority } = call;
    if (trait === undefined) return limit.meet(priority === this.fixedPriority ? this.usual : { priority });
    return limit.meet({ priority, ...trait.metBy(call[trait.option as keyof Call], limit, looks) });
  }

  /** The limit for callers that use its units under the name of a share, regardless of the start of its windows. */
  limitForShare(identity: string, share: string): CompiledLimit {
    const { trait } = this.settings;
    if (trait?.option !== 'share') throw argumentError('SLUICE_UNSUPPORTED_CALL', messages.noShare(this.name));
    const limit = this.limitFor(identity);
    return limit.meet(trait.metBy(share, limit));
  }
}

const NONE: readonly Rule[] = [];
const WITHOUT_PRIORITY: MetBy = { priority: undefined };

function isOtherFunction(one: unknown, other: unknown): boolean {
  return typeof one === 'function' && one !== other;
}

/** The settings of a rule, except those of its limit. */
export interface RuleSettings {
  readonly key: BoundKey;
  /** True if the limit sets its own key. Otherwise code may pass any key. */
  readonly hasKey?: boolean;
  /**
   * The number of leading bits of an IPv6 address that identify a client.
   * @default 64
   */
  readonly ipv6Prefix?: number;
  /** Finds the address, for requests without a key. */
  readonly byAddress: IdentifyAddress;
  readonly onMissingKey: OnMissingKey;
  /** True if the app has explicitly chosen the address for requests without a key. */
  readonly addressIsMeant?: boolean;
  readonly onMissingReader: OnMissingReader;
  readonly phase: Phase;
  /** The units of a request; an estimate if it is measured. */
  readonly cost: Exclude<NonNullable<CommonLimitOptions['cost']>, MeasuredCost>;
  /** How requests are measured; `undefined` if they are not. */
  readonly measure?: Measure | undefined;
  /** True if a cost is set, so that the final cost of a request may differ. */
  readonly hasCost: boolean;
  readonly priority: CommonLimitOptions['priority'];
  /** The option, if any, because of which the limit can't have children. */
  readonly childless?: string | undefined;
  /** The trait of requests and calls that selects their version of the limit. */
  readonly trait?: RequestTrait<BoundKey> | undefined;
  readonly count: Count;
  readonly answer: RefusalAnswer;
  /** All common options as written, with the app's defaults. For an option that has a field of its own here, use that field. */
  readonly options: AllCommonOptions;
  /** True if each route has its own counter. */
  readonly perRoute: boolean;
  /** True if it has the default name, made of algorithm and rate. */
  readonly unnamed: boolean;
  /** The function that found its rate. */
  readonly rate?: RateFunction | undefined;
  /** Shared by all rules of an app, since a function can create new rules for each request. */
  readonly log: OnceLogger;
}

/** The limits of some keys that differ from the limit of all others. */
export interface KeyedLimits {
  limitFor(identity: string): CompiledLimit;
}
