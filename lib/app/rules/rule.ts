import type { Anchor } from '../../engine/algorithms/anchor.js';
import type {
  Outcome,
  Phase,
  CommonLimitOptions,
  Count,
  OnMissingKey,
  OnMissingReader,
} from '../config/common-limit-options.js';
import { type Measure, type MeasuredCost, measuredUnits } from '../config/measured-cost.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { planMessages } from '../../engine/errors/messages/plan.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import type { Identify } from '../key-resolvers/key-scheme.js';
import type { CompiledLimit, MetBy } from '../../engine/limits/compiled-limit.js';
import { identityWithin, NOBODY, ownIdentity } from '../../engine/limits/hierarchy.js';
import type { Priority } from '../../engine/limits/priority.js';
import { andThen, type Awaitable } from '../../engine/util/awaitable.js';
import type { RateFunction } from '../config/limits-by-request.js';
import type { OnceLogger } from '../../engine/errors/logger.js';
import type { RequestTrait } from '../../storage/features/request-trait.js';
import type { IdentifyAddress } from '../key-resolvers/ip.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';

/** What a call from code specifies. */
export interface Call {
  readonly priority?: Priority | undefined;
  readonly share?: string | undefined;
  readonly anchor?: Anchor | null | undefined;
}

/** A limit as routes and code use it: which version decides now, what it is within, and its options besides the algorithm's. */
export class Rule {
  private effective: CompiledLimit;
  /** Set only while some identities have overrides of their own. */
  private keyed: KeyedLimits | undefined;
  private listeners: (() => void)[] | undefined;
  /** The cost of a call from code, without a request to derive it from. */
  readonly fixedCost: number;
  /** The priority of a call from code, unless it sets one. */
  readonly fixedPriority: Priority | undefined;
  /** @internal The defaults of what requests and calls specify. */
  readonly usual: MetBy;
  /** @internal Finds the rules of all limits that its own is within; set if there are any. */
  findAncestors: (() => readonly Rule[]) | undefined;
  /** @internal Whether a route refers to it. For limits of the module and of routes themselves this is known anyway. */
  isOnRoute = false;
  private knownAncestors: readonly Rule[] | undefined;

  constructor(
    /** The limit as it was configured. */
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

  /** The limit that decides now for all identities without overrides of their own. */
  get limit(): CompiledLimit {
    return this.effective;
  }

  /** The limit that decides now for an identity of its own `key`, whatever that is within. */
  limitFor(identity: string): CompiledLimit {
    const { keyed } = this;
    return keyed === undefined ? this.limit : keyed.limitFor(ownIdentity({ limit: this.configured, identity }));
  }

  /** Whether its counters are within those of another limit. */
  get isNested(): boolean {
    return this.configured.parent !== undefined;
  }

  /** The rules of all limits that its own is within, its parent first. Throws `RateLimitConfigError`. */
  get ancestors(): readonly Rule[] {
    return (this.knownAncestors ??= this.findAncestors?.() ?? NONE);
  }

  /** The ancestors that are charged what this one is: they have no cost of their own. */
  get ancestorsOfSameCost(): readonly Rule[] {
    const other = this.ancestors.findIndex(({ hasCost }) => hasCost);
    return other < 0 ? this.ancestors : this.ancestors.slice(0, other);
  }

  /** The identity of a counter, from the identities that the `key` of each level found, or did not find. */
  identityAmong(found: (rule: Rule) => string | undefined): string {
    const own = found(this) ?? NOBODY;
    const [parent] = this.ancestors;
    if (parent === undefined) return own;
    return identityWithin({ limit: parent.configured, identity: parent.identityAmong(found) }, own);
  }

  /** Whether it counts requests, and not only what code passes. */
  get countsRequests(): boolean {
    return this.isOnRoute || this.configured.namespace !== '';
  }

  /** Whether each route has its own counter, and so its own rule. */
  get perRoute(): boolean {
    return this.settings.perRoute;
  }

  /** Whether another limit has the same default name, though it counts by another function, or has its rate from one. */
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

  /** The limit for calls for an identity that set no priority. */
  usualLimit(identity: string): CompiledLimit {
    return this.limitFor(identity).meet(this.usual);
  }

  /** Lets another limit of the same name decide from now on, and others for some identities. */
  decideBy(limit: CompiledLimit, keyed?: KeyedLimits): void {
    if (limit === this.effective && keyed === undefined && this.keyed === undefined) return;
    this.effective = limit;
    this.keyed = keyed;
    for (const listener of this.listeners ?? NO_LISTENERS) listener();
  }

  /** Calls back whenever another limit decides from then on. */
  onChange(listener: () => void): void {
    (this.listeners ??= []).push(listener);
  }

  get phase(): Phase {
    if (!this.isNested) return this.settings.phase;
    // All levels are checked together.
    return [this, ...this.ancestors].some(({ settings }) => settings.phase === 'authenticated')
      ? 'authenticated'
      : this.settings.phase;
  }

  /** The response when this limit refuses. */
  get answer(): RefusalAnswer {
    return this.settings.answer;
  }

  /** Whether requests have costs of their own. */
  get hasCost(): boolean {
    return this.settings.hasCost;
  }

  /** Whether it matters after the guards. */
  get needsInterceptor(): boolean {
    return this.phase === 'authenticated' || this.waitsForEnd || this.ancestors.some((rule) => rule.waitsForEnd);
  }

  /** Whether the end of a request matters: it may not count, or it ends what is held. */
  get waitsForEnd(): boolean {
    const { count, measure } = this.settings;
    return count !== 'all' || measure !== undefined || this.limit.algorithm.leases !== undefined;
  }

  /** Whether it looks at how much a request took. */
  get measures(): boolean {
    const { count, measure } = this.settings;
    return measure !== undefined || typeof count === 'function';
  }

  /** Whether units that a request is charged may have to be given back. */
  get mayGiveBack(): boolean {
    return this.waitsForEnd || this.hasCost || this.limit.algorithm.queue !== undefined;
  }

  /** Whether a request with this outcome counts, or how many units it counts. */
  counts(outcome: Outcome): Awaitable<boolean | number> {
    const { count, measure } = this.settings;
    const counted =
      typeof count === 'function'
        ? count(outcome)
        : // A client that did not wait for the response cannot choose which outcome it had.
          count === 'all' || outcome.aborted || outcome.failed === (count === 'failed');
    if (measure === undefined) return counted;
    return andThen(counted, (is) => (is === true ? (measuredUnits(measure, outcome) ?? true) : is));
  }

  /** Finds the identity of a request. Fixed rules with equal keys share the function. */
  get identify(): Identify {
    return this.settings.key.identify;
  }

  /** The limit for a call from code, which says what the limit's trait needs to know. A call that only looks may leave that open. */
  limitForCall(identity: string, call: Call, looks = false): CompiledLimit {
    const { trait } = this.settings;
    if (call.anchor !== undefined && trait?.option !== 'anchor') {
      throw new RateLimitArgumentError(planMessages.notAnchored(this.name));
    }
    if (call.share !== undefined && trait?.option !== 'share') {
      throw new RateLimitArgumentError(messages.noShare(this.name));
    }
    const limit = this.limitFor(identity);
    const { priority = this.fixedPriority } = call;
    if (trait === undefined) return limit.meet(priority === this.fixedPriority ? this.usual : { priority });
    return limit.meet({ priority, ...trait.metBy(call[trait.option as keyof Call], limit, looks) });
  }

  /** The limit for those who share its units under a name, wherever its windows begin. */
  limitForShare(identity: string, share: string): CompiledLimit {
    const { trait } = this.settings;
    if (trait?.option !== 'share') throw new RateLimitArgumentError(messages.noShare(this.name));
    const limit = this.limitFor(identity);
    return limit.meet(trait.metBy(share, limit));
  }
}

const NONE: readonly Rule[] = [];
const NO_LISTENERS: readonly (() => void)[] = [];
const WITHOUT_PRIORITY: MetBy = { priority: undefined };

function isOtherFunction(one: unknown, other: unknown): boolean {
  return typeof one === 'function' && one !== other;
}

/** The settings of a rule besides its limit. */
export interface RuleSettings {
  readonly key: BoundKey;
  /** Whether the limit itself sets its key; otherwise code may pass any. */
  readonly hasKey?: boolean;
  /**
   * The number of leading bits of an IPv6 address that identify a client.
   * @default 64
   */
  readonly ipv6Prefix?: number;
  /** The identity by address, for requests without a key. */
  readonly byAddress: IdentifyAddress;
  readonly onMissingKey: OnMissingKey;
  /** Whether the app has explicitly chosen the address for requests without a key. */
  readonly addressIsMeant?: boolean;
  readonly onMissingReader: OnMissingReader;
  readonly phase: Phase;
  /** The units of a request; an estimate if it is measured. */
  readonly cost: Exclude<NonNullable<CommonLimitOptions['cost']>, MeasuredCost>;
  /** How requests are measured; `undefined` if they are not. */
  readonly measure?: Measure | undefined;
  /** Whether a cost was set, so that the final cost of a request may differ. */
  readonly hasCost: boolean;
  readonly priority: CommonLimitOptions['priority'];
  /** An option that it has, because of which no limit can be within it. */
  readonly childless?: string | undefined;
  /** The trait of requests and calls by which they meet a version of it. */
  readonly trait?: RequestTrait<BoundKey> | undefined;
  readonly count: Count;
  readonly skip: CommonLimitOptions['skip'];
  readonly answer: RefusalAnswer;
  /** Whether each route has its own counter. */
  readonly perRoute: boolean;
  /** Whether its name is the default one, made of algorithm and rate. */
  readonly unnamed: boolean;
  /** The function that found its rate. */
  readonly rate?: RateFunction | undefined;
  /** Shared by all rules of an app, since a function can make new ones for each request. */
  readonly log: OnceLogger;
}

/** Limits of some identities, which differ from that of all others. */
export interface KeyedLimits {
  limitFor(identity: string): CompiledLimit;
}
