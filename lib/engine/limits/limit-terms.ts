import { type Algorithm, issuesTickets, type Parameters } from '../algorithms/algorithm.js';
import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import { configError } from '../errors/errors.js';
import { optionMessages } from '../errors/messages/options.js';
import { messages } from '../errors/messages/general.js';
import { bare } from '../util/objects.js';
import type { Estimates } from './estimates.js';
import { type DecidesTogether, featuresOf, type LimitFeature } from './limit-feature.js';
import { unitsOf } from '../algorithms/share.js';
import {
  type CarryOver,
  type Escalation,
  type LimitMode,
  type LimitPlace,
  type LimitSettings,
  NEAR_LIMIT,
  type OnStoreError,
} from './limit-settings.js';

/** Throws for options that belong to another algorithm. Unknown options are left to the caller. */
export function refuseForeignOptions(options: AlgorithmOptions, algorithm: Algorithm, location: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (option === 'algo' || value === undefined || Object.hasOwn(algorithm.options, option)) continue;
    const owners = algorithms.withOption(option);
    if (owners.length === 0) continue;
    throw configError(
      'SLUICE_UNSUPPORTED_OPTION',
      optionMessages.at(location, optionMessages.foreign(option, algorithm.name, owners)),
    );
  }
}

/** The result of reading an algorithm's options, which doesn't depend on the place of the limit. */
interface OptionsReading {
  readonly algorithm: Algorithm;
  readonly parameters: Parameters;
  /** The default name, for a limit that does not set one. */
  readonly defaultName: string;
}

function readOptionsOf(options: AlgorithmOptions, location: string): OptionsReading {
  const algorithm = algorithms.for(options);
  if (algorithm === undefined) {
    const message = messages.unknownAlgorithm(location, options.algo, algorithms.names);
    if (options.algo !== undefined) throw configError('SLUICE_UNKNOWN_ALGORITHM', message);
    throw configError('SLUICE_MISSING_OPTION', optionMessages.hinted(message, options));
  }
  refuseForeignOptions(options, algorithm, location);
  const parameters = algorithm.compile(options as never, location);
  return { algorithm, parameters, defaultName: algorithm.defaultName(options as never) };
}

/** Characters that a namespace only contains if a method has a very unusual name. */
const SEPARATORS = /[%:\r\n]/g;

/** Appended to the code of the algorithm in the keys of a candidate. */
const CANDIDATE = 'c';

/** The place of a limit, and a limit with the same options and settings in another place. */
export interface PlaceLikeAnother extends LimitPlace {
  readonly like?: LimitTerms;
}

/** The terms of one limit, which determine its decisions and identify its counters. */
export abstract class LimitTerms {
  /** Its name, which may be the default one. */
  readonly name: string;
  /** The namespace of its counters; empty if its name alone identifies them. */
  readonly namespace: string;
  /** The algorithm that decides. */
  readonly algorithm: Algorithm;
  /** The parameters of its algorithm that stores use to decide. */
  readonly parameters: Parameters;
  /** The parameters that the user declared. A feature may make all instances decide with others. */
  readonly declared: Parameters;
  /** Evaluated, counted and reported, but never a reason to reject. */
  readonly shadow: boolean;
  /** Not checked at all: its callers let everything pass. Its counters stay unchanged. */
  readonly off: boolean;
  /** A counter is near its limit once this number of units is used. */
  readonly nearFrom: number;
  /** The fallback while its store fails. */
  readonly onStoreError: OnStoreError;
  /** The treatment of units that are left under another quota; if undefined, the algorithm decides. */
  readonly carry: CarryOver | undefined;
  /** The microseconds for which it blocks a rejected key, for the first offence if there are steps; 0 for no block. */
  readonly blockFor: number;
  /** True if attempts during a block extend it. */
  readonly strikes: boolean;
  /** True if rejected attempts also count. */
  readonly countsRefused: boolean;
  /** The steps of its blocks, if they have any. */
  readonly escalation: Escalation | undefined;
  /** True if its rejections may be cached until their wait is over. */
  readonly remembersRefusals: boolean;
  /** Counted by each instance of the app separately, in process. */
  readonly instance: boolean;
  /** The number of Redis replicas that confirm charges. It is read by each check. */
  readonly replicas: number;
  /** True if it is a candidate. */
  readonly isCandidate: boolean;
  /**
   * Identifies its counters among those of all limits: namespaces contain no colons, a code is two letters, followed by one more
   * for a candidate, and a generation is digits.
   */
  readonly id: string;
  /** @internal Stores units that are reserved as an estimate; `undefined` if that isn't possible. It is read by each check. */
  readonly estimates: Estimates | undefined;
  /** @internal Its features; `undefined` if it has none. It is read by each check. */
  readonly features: readonly LimitFeature[] | undefined;
  /** Identifies the data of its features among that of all limits. It stays the same when counters are reset or the algorithm changes. */
  readonly recordId: string;
  /** True if it learns its limit. It is read by each check. */
  readonly adapts: boolean;
  /** The name of its parent; `undefined` if it isn't nested. */
  readonly parent: string | undefined;
  /** @internal Decides which entries of its checks fit; `undefined` if it decides alone. It is read by each check. */
  readonly together: DecidesTogether | undefined;
  /** The maximum number of units of its quota that features withhold from a check. */
  readonly withholds: number;
  /** True if the number of units that fit at once differs between windows. It is read by each check. */
  readonly varies: boolean;
  /** True if it accepts credits. It is read by each check. */
  readonly takesCredits: boolean;
  /** True if it is hidden from clients. */
  readonly hidden: boolean;
  /** True if its rejections don't report when to retry. */
  readonly withoutRetryAfter: boolean;
  /** The hooks that are called with its decisions; `undefined` if there are none. */
  readonly hooks: object | undefined;
  /** Its `id` without the generation. */
  readonly lineage: string;
  /** All other settings. The object has no prototype, because other code may have extended `Object.prototype`. */
  protected readonly settings: LimitSettings;
  /** The place of its declaration, for messages. Limits in different places share their settings. */
  protected readonly location: string;
  /** The result of reading its options. Limits in different places share it. */
  protected readonly reading: OptionsReading;

  constructor(
    /** The options of its algorithm as written. */
    readonly options: AlgorithmOptions,
    given: LimitSettings,
    place?: PlaceLikeAnother,
  ) {
    // Has no prototype, because other code may have extended `Object.prototype`. Settings of another limit already have none.
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
    // A limit has features if an equal one in another place has.
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
    // A limit that isn't checked never rejects.
    this.shadow = shadow || this.off;
    this.nearFrom = like === undefined ? this.nearFromOf(this.quota) : like.nearFrom;
    this.onStoreError = settings.onStoreError ?? 'local';
    this.strikes = settings.strikes ?? false;
    this.escalation = settings.escalation;
    this.blockFor = settings.escalation?.steps[0] ?? settings.blockFor ?? 0;
    // A block resets the counter.
    this.countsRefused = settings.countsRefused === true && algorithm.beyond === true && this.blockFor === 0;
    this.varies = algorithm.varying !== undefined;
    this.takesCredits = algorithm.varying?.takesCredits(this.declared) ?? false;
    // In a variant, and with the units of a plan, units that were used under another quota stay used.
    this.carry = countsOtherwise || this.varies ? undefined : settings.carry;
    this.remembersRefusals =
      settings.remembersRefusals === true &&
      // Each attempt has to reach the counter.
      !this.strikes &&
      !this.countsRefused &&
      !issuesTickets(algorithm) &&
      !(this.features ?? []).some(({ forgetsRefusals }) => forgetsRefusals === true);
    this.instance = settings.instance ?? false;
    this.replicas = settings.replicas ?? 0;
    if (this.adapts && !this.instance) {
      throw configError('SLUICE_UNSUPPORTED_OPTION', messages.notShared(location, algorithm.name, 'cluster'));
    }
    this.isCandidate = settings.isCandidate ?? false;
    this.parent = settings.parent;
    this.hooks = settings.hooks;
    this.hidden = settings.hidden ?? false;
    this.withoutRetryAfter = settings.withoutRetryAfter ?? false;
    this.lineage = `${this.recordId}:${this.isCandidate ? code + CANDIDATE : code}`;
    this.id = generation > 0 ? `${this.lineage}.${generation}` : this.lineage;
  }

  /** The option that gives its windows more units than the quota; `undefined` if there is none. */
  get planOption(): 'credits' | 'rollover' | undefined {
    if (this.varies) return this.takesCredits ? 'credits' : 'rollover';
    return undefined;
  }

  /** Its mode: it rejects, only reports, or is off. */
  get mode(): LimitMode {
    if (this.off) return 'off';
    return this.shadow ? 'shadow' : 'enforce';
  }

  /** The maximum number of units that can be allowed at once. */
  get quota(): number {
    return this.parameters.quota;
  }

  /** The name of its units, if they have one. */
  get unit(): string | undefined {
    return this.settings.unit;
  }

  /** The bytes of a unit, if its units are bytes of responses. */
  get bytesPerUnit(): number | undefined {
    return this.settings.bytesPerUnit;
  }

  /** The number of used units of a quota from which a counter is near its limit. */
  protected nearFromOf(quota: number): number {
    return unitsOf(this.settings.nearLimit ?? NEAR_LIMIT, quota);
  }

  /** The length of the limit's window at `nowMs`, in milliseconds. */
  windowMs(nowMs: number): number {
    return this.algorithm.window(this.declared, nowMs * 1000) / 1000;
  }

  /**
   * The milliseconds after which the full quota always fits again: a client that sends no more per period of this length is never rejected.
   */
  paceMs(nowMs: number): number {
    const { algorithm, declared } = this;
    return algorithm.pace === undefined ? this.windowMs(nowMs) : algorithm.pace(declared) / 1000;
  }
}
