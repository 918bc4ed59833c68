import { RateLimitConfigError, type RateLimitStoreError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { shareMessages } from '../errors/share-messages.js';
import { type Algorithm, issuesTickets, type Parameters } from '../algorithms/algorithm.js';
import { type ShareParameters, sharedBy, type Tenant } from '../algorithms/fair-share.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { wholeShare } from '../algorithms/share.js';
import { SHARE_SLICES } from '../algorithms/tenant-record.js';
import { RecentMap } from '../util/recent-map.js';

/** What happens to a limit while its store fails: it is counted in process, lets pass, or answers 503. */
export type StoreErrorPolicy = 'local' | 'allow' | 'deny';

/** What was asked of a limit whose store failed. */
export interface UnansweredCheck {
  /** The limit's name. */
  readonly limit: string;
  /** Whom it counts, such as `ip:203.0.113.7`. */
  readonly key: string;
  /** Units. */
  readonly cost: number;
}

/** What happens to a limit while its store fails, or a function that says it for a check. One that fails says `'local'`. */
export type OnStoreError =
  StoreErrorPolicy | ((error: RateLimitStoreError, check: UnansweredCheck) => StoreErrorPolicy);

export const STORE_ERROR_POLICIES: readonly StoreErrorPolicy[] = ['local', 'allow', 'deny'];

/** What becomes of units that were left before a quota grew: they grow with it, or by as much. */
export interface CarryOver {
  readonly mode: 'proportional' | 'additive';
  readonly quotaBefore: number;
}

/** Blocks that last longer with each offence, in microseconds. */
export interface Escalation {
  /** How long the block of the first offence lasts, of the second, and so on; all further ones last as long as the last of these. */
  readonly steps: readonly number[];
  /** How long after the end of the last block the offences are forgotten. */
  readonly forgetAfter: number;
}

/** Units that an instance takes at once, to decide in process. */
export interface PrefetchTerms {
  /** The most units that are taken at once. */
  readonly units: number;
  /** How long they can be used, in microseconds. */
  readonly ttl: number;
}

/** How units are shared among tenants. */
export interface ShareTerms {
  /** The share of the quota that each active tenant may use at least; 0 for none. */
  readonly floor: number;
}

/** The share of its quota from which on a limit is near. */
const NEAR_LIMIT = 0.8;

/** What a namespace holds only if a method has a very odd name. */
const SEPARATORS = /[%:\r\n]/g;

/** What follows the code of its algorithm in the keys of a candidate. */
const CANDIDATE = 'c';

/** What a limit is made of besides its algorithm's options. */
export interface LimitSettings {
  /** Where the user wrote it, for messages. */
  readonly location: string;
  /** The namespace of its counters; nothing if its name alone tells them apart. */
  readonly namespace?: string;
  /** Its name; that of its algorithm with its rate unless given. */
  readonly name?: string | undefined;
  /** What ends its name if that is not given. */
  readonly nameEnd?: string;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow?: boolean;
  /** Not asked at all. */
  readonly off?: boolean;
  /** The share of the quota from which on it is near. */
  readonly nearLimit?: number | undefined;
  /** What happens while its store fails; `'local'` unless given. */
  readonly onStoreError?: OnStoreError;
  /** What becomes of the units that were left under another quota, if not what the algorithm makes of it. */
  readonly carry?: CarryOver | undefined;
  /** Whom it refuses, it refuses for so long: microseconds. */
  readonly blockFor?: number;
  /** It refuses longer with each offence; then `blockFor` is not read. */
  readonly escalation?: Escalation | undefined;
  /** Its refusals may be remembered: units come back by time alone, or by a call that tells all instances. */
  readonly remembersRefusals?: boolean;
  /** Units are taken in advance, and requests are decided in process. */
  readonly prefetch?: PrefetchTerms | undefined;
  /** Counted by each instance of the app for itself. */
  readonly instance?: boolean;
  /** Its units are shared among tenants. */
  readonly shared?: ShareTerms | undefined;
  /** How often its counters were made to start anew; each generation has keys of its own. */
  readonly generation?: number;
  /** All options of the algorithm of a second version, which is counted beside it. */
  readonly candidate?: AlgorithmOptions | undefined;
  /** It is such a second version itself. */
  readonly isCandidate?: boolean;
}

/** A limit whose options have been read: what stores work with. */
export class CompiledLimit {
  /** Its name, the default one included. */
  readonly name: string;
  /** The namespace of its counters; empty if its name alone tells them apart. */
  readonly namespace: string;
  /** How it decides. */
  readonly algorithm: Algorithm;
  /** What its algorithm made of its options, by which stores decide. */
  readonly parameters: Parameters;
  /** What the user wrote: where units are prefetched, all instances decide by stricter parameters. */
  private readonly declared: Parameters;
  /** Evaluated, counted and reported, but never a reason to refuse. */
  readonly shadow: boolean;
  /** Not asked at all: its callers let everything pass. Its counters stay as they are. */
  readonly off: boolean;
  /** It is near once so many units are used. */
  readonly nearFrom: number;
  /** What happens while its store fails. */
  readonly onStoreError: OnStoreError;
  /** What becomes of the units that were left under another quota; without it, what the algorithm makes of them. */
  readonly carry: CarryOver | undefined;
  /** Microseconds for which it refuses whom it has refused, for the first time if they have steps; 0 for no longer than it has to. */
  readonly blockFor: number;
  /** The steps of its blocks, if they have any. */
  readonly escalation: Escalation | undefined;
  /** Its refusals may be remembered until their wait is over. */
  readonly remembersRefusals: boolean;
  /** The units that an instance takes at once, if it does. */
  readonly prefetch: PrefetchTerms | undefined;
  /** Counted by each instance of the app for itself, in process. */
  readonly instance: boolean;
  /** A second version of it, which is counted beside it in the same call, with counters of its own, and never refuses. */
  readonly candidate: CompiledLimit | undefined;
  /** It is a second version of another limit. */
  readonly isCandidate: boolean;
  /** Who meets it, if its units are shared and that is known. */
  readonly tenant: Tenant | undefined;
  /** The same limit as each tenant meets it, if its units are shared. */
  private readonly tenants: RecentMap<CompiledLimit> | undefined;
  /**
   * Tells its counters from those of every other limit: no namespace in it holds a colon, a code is two letters, followed by one
   * more if it is a candidate's, a generation digits.
   */
  readonly id: string;
  /** Its `id` without the generation. */
  readonly lineage: string;

  /**
   * Reads the options. Throws `RateLimitConfigError`.
   *
   * @param options those of the algorithm
   * @param settings all others
   */
  constructor(
    /** The options of its algorithm, as they were written. */
    readonly options: AlgorithmOptions,
    private readonly settings: LimitSettings,
  ) {
    const { location, namespace = '', name, shadow = false, generation = 0, ...rest } = settings;
    const algorithm = algorithms.get(options.algo);
    if (algorithm === undefined) {
      throw new RateLimitConfigError(messages.unknownAlgorithm(location, options.algo, algorithms.names));
    }
    refuseForeignOptions(options, algorithm, location);
    this.algorithm = rest.shared === undefined ? algorithm : sharedBy(algorithm);
    this.declared = algorithm.compile(options as never, location);
    this.prefetch = rest.prefetch;
    this.parameters =
      this.prefetch === undefined ? this.declared : prefetched(algorithm, this.declared, this.prefetch, location);
    if (rest.shared !== undefined) {
      this.parameters = shareParameters(algorithm, this.declared, rest.shared, location);
      this.tenants = new RecentMap();
    }
    this.name = name ?? algorithm.defaultName(options as never) + (settings.nameEnd ?? '');
    this.namespace = namespace;
    this.off = rest.off ?? false;
    // Nothing is refused by a limit that is not asked.
    this.shadow = shadow || this.off;
    this.nearFrom = unitsOf(rest.nearLimit ?? NEAR_LIMIT, this.quota);
    this.onStoreError = rest.onStoreError ?? 'local';
    this.escalation = rest.escalation;
    this.blockFor = rest.escalation?.steps[0] ?? rest.blockFor ?? 0;
    // What tenants used under another quota stays theirs.
    this.carry = rest.shared === undefined ? rest.carry : undefined;
    this.remembersRefusals =
      rest.remembersRefusals === true && !issuesTickets(algorithm) && this.prefetch === undefined;
    this.instance = rest.instance ?? false;
    this.isCandidate = rest.isCandidate ?? false;
    const code = this.isCandidate ? algorithm.code + CANDIDATE : algorithm.code;
    this.lineage = [this.namespace.replaceAll(SEPARATORS, encodeURIComponent), this.name, code].join(':');
    this.id = generation > 0 ? `${this.lineage}.${generation}` : this.lineage;
    this.candidate = rest.candidate && candidateOf(rest.candidate, { ...settings, name: this.name });
  }

  /** Whether its units are shared among tenants. */
  get isShared(): boolean {
    return this.tenants !== undefined;
  }

  /** The limit as requests of a tenant meet it, if its units are shared. */
  forTenant(tenant: Tenant | undefined): CompiledLimit {
    const { tenants } = this;
    if (tenants === undefined || tenant === undefined) return this;
    return tenants.of(`${tenant.weight} ${tenant.id}`, () => {
      const parameters: ShareParameters = { ...(this.parameters as ShareParameters), tenant };
      const own = Object.create(this) as CompiledLimit;
      return Object.assign(own, { parameters, tenant });
    })!;
  }

  /** The most units that can be allowed at once. */
  get quota(): number {
    return this.parameters.quota;
  }

  /**
   * The same limit with a part of its rate and quota, at least one unit, and no prefetched units: what one of several instances
   * may allow by itself.
   */
  share(part: number): CompiledLimit {
    const { prefetch: _, carry: _none, ...settings } = this.settings;
    const options: AlgorithmOptions = this.algorithm.share(this.options as never, part);
    const candidate: AlgorithmOptions | undefined = this.candidate?.algorithm.share(settings.candidate as never, part);
    return new CompiledLimit(options, { ...settings, name: this.name, candidate }).forTenant(this.tenant);
  }

  /** The same limit where no units are prefetched: it is decided by what the user wrote. */
  withoutPrefetch(): CompiledLimit {
    const { prefetch: _, ...settings } = this.settings;
    return new CompiledLimit(this.options, settings);
  }

  /** The same limit with counters of its own. */
  within(namespace: string): CompiledLimit {
    return new CompiledLimit(this.options, { ...this.settings, namespace }).forTenant(this.tenant);
  }

  /** Milliseconds of the limit's window at `nowMs`. */
  windowMs(nowMs: number): number {
    return this.algorithm.window(this.declared, nowMs * 1000) / 1000;
  }
}

/** The second version of a limit: like the first in all but its algorithm's options, and in shadow mode. */
function candidateOf(options: AlgorithmOptions, settings: LimitSettings): CompiledLimit {
  const { candidate: _, carry: _none, onStoreError, ...rest } = settings;
  return new CompiledLimit(options, {
    ...rest,
    location: `${rest.location}.candidate`,
    shadow: true,
    isCandidate: true,
    // A function of the user's is asked of the limit alone.
    ...(typeof onStoreError === 'string' && { onStoreError }),
  });
}

/** A share of a quota in whole units, without what a product of fractions has too much: 0.55 of 100 is 55. */
function unitsOf(share: number, quota: number): number {
  return Math.min(quota, Math.ceil(Number((share * quota).toPrecision(12))));
}

function shareParameters(
  algorithm: Algorithm,
  declared: Parameters,
  { floor }: ShareTerms,
  location: string,
): ShareParameters {
  if (algorithm.sharing === undefined) {
    throw new RateLimitConfigError(shareMessages.notShareable(location, algorithm.name, algorithms.withAny('sharing')));
  }
  const terms = algorithm.sharing.terms(declared);
  if (terms === undefined) throw new RateLimitConfigError(shareMessages.shareWith(location, "refill: 'intervally'"));
  const { units, span } = terms;
  const length = Math.max(1, Math.ceil(span / (SHARE_SLICES + 1)));
  return { ...declared, shareLength: length, shareUnits: units, floor: wholeShare(units, floor) };
}

function prefetched(algorithm: Algorithm, declared: Parameters, { ttl }: PrefetchTerms, location: string): Parameters {
  if (algorithm.prefetch === undefined) {
    throw new RateLimitConfigError(messages.notPrefetchable(location, algorithm.name, algorithms.withAny('prefetch')));
  }
  const parameters = algorithm.prefetch.parameters(declared, ttl);
  if (parameters === undefined) throw new RateLimitConfigError(messages.prefetchTooLong(location, ttl / 1000));
  return parameters;
}

/** Options that another algorithm knows and this one does not are a mistake; others are the caller's to judge. */
function refuseForeignOptions(options: AlgorithmOptions, algorithm: Algorithm, location: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || algorithm.options.includes(option)) continue;
    const owners = algorithms.withOption(option);
    if (owners.length === 0) continue;
    throw new RateLimitConfigError(messages.foreignOption(location, option, algorithm.name, algorithm.options, owners));
  }
}
