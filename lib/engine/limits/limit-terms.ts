import { type Algorithm, issuesTickets, type Parameters } from '../algorithms/algorithm.js';
import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { bare } from '../util/objects.js';
import type { Estimates } from './estimates.js';
import { type DecidesTogether, featuresOf, type LimitFeature } from './limit-feature.js';
import { unitsOf } from './limit-parameters.js';
import {
  type CarryOver,
  type Escalation,
  type LimitMode,
  type LimitPlace,
  type LimitSettings,
  NEAR_LIMIT,
  type OnStoreError,
} from './limit-settings.js';
import { optionMessages } from '../errors/messages/options.js';
import { refuseForeignOptions } from './limit-refusals.js';

/** What the options of an algorithm say of a limit, wherever it is declared. */
interface OptionsReading {
  readonly algorithm: Algorithm;
  readonly parameters: Parameters;
  /** The name of a limit that does not set its own. */
  readonly defaultName: string;
}

/** Reads the options of an algorithm. Throws `RateLimitConfigError`. */
function readOptionsOf(options: AlgorithmOptions, location: string): OptionsReading {
  const algorithm = algorithms.for(options);
  if (algorithm === undefined) {
    const message = messages.unknownAlgorithm(location, options.algo, algorithms.names);
    throw new RateLimitConfigError(options.algo === undefined ? optionMessages.hinted(message, options) : message);
  }
  refuseForeignOptions(options, algorithm, location);
  const parameters = algorithm.compile(options as never, location);
  return { algorithm, parameters, defaultName: algorithm.defaultName(options as never) };
}

/** Characters that a namespace contains only if a method has a very odd name. */
const SEPARATORS = /[%:\r\n]/g;

/** Follows the code of the algorithm in the keys of a candidate. */
const CANDIDATE = 'c';

/** Where a limit is declared, and a limit with the same options and settings in another place. */
export interface PlaceLikeAnother extends LimitPlace {
  readonly like?: LimitTerms;
}

/** The terms of one limit: how it decides, and what identifies its counters. */
export abstract class LimitTerms {
  /** Its name, the default one included. */
  readonly name: string;
  /** The namespace of its counters; empty if its name alone identifies them. */
  readonly namespace: string;
  /** How it decides. */
  readonly algorithm: Algorithm;
  /** The parameters of its algorithm, by which stores decide. */
  readonly parameters: Parameters;
  /** The parameters that the user declared: a feature may have all instances decide by others. */
  readonly declared: Parameters;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow: boolean;
  /** Not checked at all: its callers let everything pass. Its counters stay as they are. */
  readonly off: boolean;
  /** It is near once this many units are used. */
  readonly nearFrom: number;
  /** What happens while its store fails. */
  readonly onStoreError: OnStoreError;
  /** What happens to units left under another quota; without it, the algorithm decides. */
  readonly carry: CarryOver | undefined;
  /** Microseconds for which it blocks a refused key, for the first offence if there are steps; 0 for no block. */
  readonly blockFor: number;
  /** Whether tries during a block prolong it. */
  readonly strikes: boolean;
  /** Whether tries that it refuses count, too. */
  readonly countsRefused: boolean;
  /** The steps of its blocks, if they have any. */
  readonly escalation: Escalation | undefined;
  /** Its refusals may be remembered until their wait is over. */
  readonly remembersRefusals: boolean;
  /** Counted by each instance of the app for itself, in process. */
  readonly instance: boolean;
  /** The number of Redis replicas that confirm what is charged. Each check reads it. */
  readonly replicas: number;
  /** Whether it is a candidate. */
  readonly isCandidate: boolean;
  /**
   * Identifies its counters among those of all limits: namespaces contain no colons, a code is two letters, followed by one more
   * for a candidate, and a generation is digits.
   */
  readonly id: string;
  /** @internal What keeps units that are reserved at an estimate; `undefined` if they cannot be. Each check reads it. */
  readonly estimates: Estimates | undefined;
  /** @internal Its features; `undefined` if it has none. Each check reads it. */
  readonly features: readonly LimitFeature[] | undefined;
  /** Identifies what features keep of it among that of all limits. It stays the same when counters are reset or the algorithm changes. */
  readonly recordId: string;
  /** Whether it learns how much fits. Each check reads it. */
  readonly adapts: boolean;
  /** The name of the limit within whose counters its own are; `undefined` if there is none. */
  readonly parent: string | undefined;
  /** @internal Decides which entries of its checks fit; `undefined` if it decides alone. Each check reads it. */
  readonly together: DecidesTogether | undefined;
  /** The most units of its quota that features withhold from a check. */
  readonly withholds: number;
  /** Whether how much fits at once differs between windows. Each check reads it. */
  readonly varies: boolean;
  /** Whether it takes credits. Each check reads it. */
  readonly takesCredits: boolean;
  /** Whether clients learn nothing of it. */
  readonly hidden: boolean;
  /** Whether its refusals say nothing of when to come back. */
  readonly withoutRetryAfter: boolean;
  /** What is called with its decisions; `undefined` if nothing is. */
  readonly hooks: object | undefined;
  /** Its `id` without the generation. */
  readonly lineage: string;
  /** All other options, without a prototype, to which other code may have written. */
  protected readonly settings: LimitSettings;
  /** Where it is declared, for messages. Limits in different places share their settings. */
  protected readonly location: string;
  /** How it decides by its options alone. Limits in different places share that. */
  protected readonly reading: OptionsReading;

  constructor(
    /** The options of its algorithm as written. */
    readonly options: AlgorithmOptions,
    given: LimitSettings,
    place?: PlaceLikeAnother,
  ) {
    // Without a prototype, to which other code may have written. Settings of another limit have none.
    const isShared = Object.getPrototypeOf(given) === null;
    const settings = isShared ? given : bare(given);
    const { location, namespace = '', like }: PlaceLikeAnother = place ?? settings;
    const reading = like === undefined ? readOptionsOf(options, location) : like.reading;
    this.settings = settings;
    this.location = location;
    this.reading = reading;
    const { name, shadow = false, generation = 0 } = settings;
    const { algorithm } = reading;
    this.algorithm = algorithm;
    this.declared = reading.parameters;
    this.name = name ?? reading.defaultName + (settings.nameEnd ?? '');
    this.namespace = namespace;
    const counted = this.namespace.replaceAll(SEPARATORS, encodeURIComponent);
    this.recordId = `${counted}:${this.name}`;
    // One of equal limits has features if the others have.
    const isBare = like !== undefined && like.features === undefined;
    this.features = isBare ? undefined : featuresOf(this, settings, location);
    this.parameters = this.declared;
    let countsOtherwise = false;
    let { code } = algorithm;
    this.together = undefined;
    this.estimates = undefined;
    this.withholds = 0;
    for (const feature of this.features ?? []) {
      this.together ??= feature.together;
      this.estimates ??= feature.estimates;
      this.withholds += feature.withholds ?? 0;
      this.parameters = feature.parameters?.(this.parameters) ?? this.parameters;
      if (feature.variant === undefined) continue;
      this.algorithm = feature.variant;
      code = feature.code ?? code;
      countsOtherwise ||= feature.variant.scriptPrefix !== undefined;
    }
    this.adapts = algorithm.adapting !== undefined;
    this.off = settings.off ?? false;
    // A limit that is not asked refuses nothing.
    this.shadow = shadow || this.off;
    this.nearFrom = like === undefined ? this.nearFromOf(this.quota) : like.nearFrom;
    this.onStoreError = settings.onStoreError ?? 'local';
    this.strikes = settings.strikes ?? false;
    this.escalation = settings.escalation;
    this.blockFor = settings.escalation?.steps[0] ?? settings.blockFor ?? 0;
    // A block forgets what was counted.
    this.countsRefused = settings.countsRefused === true && algorithm.beyond === true && this.blockFor === 0;
    this.varies = algorithm.varying !== undefined;
    this.takesCredits = algorithm.varying?.takesCredits(this.declared) ?? false;
    // What was used under another quota remains used in a variant, and so do the units of a plan.
    this.carry = countsOtherwise || this.varies ? undefined : settings.carry;
    this.remembersRefusals =
      settings.remembersRefusals === true &&
      // Each try has to reach the counter.
      !this.strikes &&
      !this.countsRefused &&
      !issuesTickets(algorithm) &&
      !(this.features ?? []).some(({ forgetsRefusals }) => forgetsRefusals === true);
    this.instance = settings.instance ?? false;
    this.replicas = settings.replicas ?? 0;
    if (this.adapts && !this.instance) {
      throw new RateLimitConfigError(messages.notShared(location, algorithm.name, 'cluster'));
    }
    this.isCandidate = settings.isCandidate ?? false;
    this.parent = settings.parent;
    this.hooks = settings.hooks;
    this.hidden = settings.hidden ?? false;
    this.withoutRetryAfter = settings.withoutRetryAfter ?? false;
    this.lineage = `${this.recordId}:${this.isCandidate ? code + CANDIDATE : code}`;
    this.id = generation > 0 ? `${this.lineage}.${generation}` : this.lineage;
  }

  /** The option that gives its windows more than their quota; `undefined` if there is none. */
  get planOption(): 'credits' | 'rollover' | undefined {
    if (this.varies) return this.takesCredits ? 'credits' : 'rollover';
    return undefined;
  }

  /** Whether it refuses, only reports, or is not asked. */
  get mode(): LimitMode {
    if (this.off) return 'off';
    return this.shadow ? 'shadow' : 'enforce';
  }

  /** The most units that can be allowed at once. */
  get quota(): number {
    return this.parameters.quota;
  }

  /** What its units are called, if they have a name. */
  get unit(): string | undefined {
    return this.settings.unit;
  }

  /** The bytes of a unit, if its units are bytes of responses. */
  get bytesPerUnit(): number | undefined {
    return this.settings.bytesPerUnit;
  }

  /** From how many used units of a quota it is near. */
  protected nearFromOf(quota: number): number {
    return unitsOf(this.settings.nearLimit ?? NEAR_LIMIT, quota);
  }

  /** The length of the limit's window at `nowMs`, in milliseconds. */
  windowMs(nowMs: number): number {
    return this.algorithm.window(this.declared, nowMs * 1000) / 1000;
  }

  /**
   * Milliseconds in which the quota always fits again: a client that sends no more in any period of that length is never refused.
   */
  paceMs(nowMs: number): number {
    const { algorithm, declared } = this;
    return algorithm.pace === undefined ? this.windowMs(nowMs) : algorithm.pace(declared) / 1000;
  }
}
