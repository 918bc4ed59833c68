import { Inject, Injectable } from '@nestjs/common';
import { type AlgorithmOptions, algorithms } from '../algorithms/index.js';
import { asksForAnchor } from '../algorithms/anchor.js';
import { blockTerms } from '../limits/block-terms.js';
import { reserveTerms } from '../limits/reserve-terms.js';
import { usageTerms } from '../limits/usage-terms.js';
import { type CarryOver, CompiledLimit, type LimitSettings } from '../limits/compiled-limit.js';
import { givenOptions, oneOf, orElse, wholeNumber } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages.js';
import { usageMessages } from '../errors/usage-messages.js';
import { OnceLogger } from '../errors/once-logger.js';
import { keySchemes } from '../key-resolvers/index.js';
import { type BoundKey, formsOf, KeyResolverFactory } from '../key-resolvers/key-resolver.factory.js';
import type { CommonLimitOptions, Count } from '../config/common-limit-options.js';
import type {
  BorrowingOptions,
  LimitDefaults,
  LimitDefinition,
  RecordedLimitOptions,
  SharedLimitOptions,
} from '../config/limit-definition.js';
import { ON_MISSING_KEY, type RateLimitSettings, storeErrorPolicy } from '../config/settings.js';
import type { RedisClient } from '../redis/client.js';
import { RATE_LIMIT_REDIS, RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { borrowTerms } from './borrow-terms.js';
import { candidateOptions } from './candidate-options.js';
import { prefetchTerms } from './prefetch-terms.js';
import {
  check,
  isCount,
  isFunction,
  isMessage,
  isName,
  isPriorityOption,
  isShare,
  PRIORITY_WANTS,
} from './option-checks.js';
import { Rule } from './rule.js';
import { shareTerms } from './share-terms.js';
import { parentName } from './within-terms.js';
import { ValueCache } from '../util/value-cache.js';

type AllCommonOptions = CommonLimitOptions & SharedLimitOptions & RecordedLimitOptions & BorrowingOptions;
type CommonOption = keyof AllCommonOptions;

/** The options of every limit, and those that are no algorithm's. */
export const COMMON: readonly CommonOption[] = [
  'name',
  'key',
  'cost',
  'priority',
  'reserveFor',
  'share',
  'usage',
  'within',
  'ceiling',
  'lends',
  'skip',
  'count',
  'blockFor',
  'forgetAfter',
  'prefetch',
  'candidate',
  'scope',
  'perRoute',
  'mode',
  'nearLimit',
  'phase',
  'onStoreError',
  'onMissingKey',
  'message',
  'body',
];

/** What only a limit itself can say. */
const NO_DEFAULTS: readonly CommonOption[] = [
  'name',
  'share',
  'usage',
  'prefetch',
  'candidate',
  'reserveFor',
  'within',
  'ceiling',
  'lends',
  'perRoute',
  'phase',
];
export const DEFAULTS = COMMON.filter((option) => !NO_DEFAULTS.includes(option)) as (keyof LimitDefaults)[];

/** Of these a limit that adapts takes over what it has not itself: those that say how it counts are not its own. */
const ADAPTIVE_DEFAULTS = DEFAULTS.filter(
  (option) => !['key', 'scope', 'count', 'blockFor', 'forgetAfter'].includes(option),
);

/** What a limit that adapts cannot have. */
const NOT_ADAPTIVE = [
  'count',
  'blockFor',
  'forgetAfter',
  'prefetch',
  'candidate',
  'reserveFor',
  'share',
  'usage',
  'within',
  'ceiling',
  'lends',
] as const;

/** Where a limit is written. */
export interface Declaration {
  /** For messages. */
  readonly location: string;
  /** What shares its counters; nothing if the limit's name alone does. */
  readonly namespace: string;
  /** The name of a limit that has none of its own. */
  readonly name?: string;
  /** Whether it applies to every route, so that it can be checked before the route is known. */
  readonly everywhere?: boolean;
  /** How often its counters were made to start anew. */
  readonly generation?: number;
  /** What becomes of what was left under another rate. */
  readonly carry?: CarryOver;
  /** Whether it is not asked at all. */
  readonly off?: boolean;
}

/** Reads what users write as a limit. */
@Injectable()
export class RuleCompiler {
  private readonly defaults: LimitDefaults = givenOptions<LimitDefaults>({}, DEFAULTS);
  /** What stores know of an equal limit holds for this one: they tell limits apart by these objects. */
  private readonly limits = new ValueCache<CompiledLimit>();
  private readonly log = new OnceLogger(logger);
  private readonly prefetches: boolean;

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly keys: KeyResolverFactory,
    @Inject(RATE_LIMIT_REDIS) redis: RedisClient | undefined,
  ) {
    this.prefetches = redis !== undefined;
    const { defaults } = settings.options;
    if (defaults === undefined) return;
    for (const option of Object.keys(defaults)) {
      if ((DEFAULTS as string[]).includes(option)) continue;
      throw new RateLimitConfigError(messages.unknownOption('defaults', option, DEFAULTS));
    }
    // What is wrong with them is told of them, not of the first limit that has them.
    this.compile({ ...defaults, algo: 'fixed-window', rate: 1, interval: 1 }, { location: 'defaults', namespace: '' });
    this.defaults = givenOptions(defaults, DEFAULTS);
  }

  compile(definition: LimitDefinition, declaration: Declaration): Rule {
    const { location, namespace, everywhere = false, generation = 0, carry, off = false } = declaration;
    const { name: givenName } = givenOptions(declaration, ['name']);
    if (typeof definition !== 'object' || definition === null || Array.isArray(definition)) {
      throw new RateLimitConfigError(messages.notALimit(location, definition));
    }
    refuseUnknownOptions(definition, location);
    const own = givenOptions<AllCommonOptions>(definition, COMMON);
    const adapts = algorithms.get(definition.algo)?.adapting !== undefined;
    if (adapts) refuseWhatIsCountedElsewhere(own, definition.algo, location);
    const common = withDefaults(own, adapts ? givenOptions(this.defaults, ADAPTIVE_DEFAULTS) : this.defaults);
    const { name = givenName, cost, priority, skip, mode = 'enforce', message, body, count = 'all' } = common;
    const { perRoute = false } = common;
    check(location, 'name', name, '1 to 128 printable ASCII characters', isName);
    check(location, 'priority', priority, PRIORITY_WANTS, isPriorityOption);
    check(location, 'skip', skip, 'a function of the context', isFunction);
    check(location, 'count', count, "'all', 'failed', 'succeeded' or a function of the outcome", isCount);
    check(location, 'message', message, 'a string or a function that makes one', isMessage);
    check(location, 'body', body, 'a function that makes an object', isFunction);
    check(location, 'perRoute', perRoute, 'true or false', (value) => typeof value === 'boolean');
    check(
      location,
      'perRoute',
      perRoute,
      "false, but in the module's 'limits'",
      (value) => value === false || everywhere,
    );
    check(location, 'nearLimit', common.nearLimit, 'a number > 0 and <= 1', isShare);
    const { onStoreError, onMissingKey, ipv6Prefix } = this.settings;
    const forms = everywhere && common.phase === 'middleware' ? earlyForms() : undefined;
    const key = this.keys.bind(orElse(common.key, adapts ? 'global' : 'ip'), location, ipv6Prefix, forms);
    const plan = shareTerms(common, location);
    const share = plan && {
      ...plan,
      by: this.keys.bind(common.share!.by, `${location}.share`, ipv6Prefix, undefined, 'by'),
    };
    const needsUser = key.needsUser || share?.by.needsUser === true;
    const { phase = needsUser ? 'authenticated' : 'guard' } = common;
    if (phase === 'middleware') refuseWhatNeedsARoute(key, common, location, everywhere);
    const options = algorithmOptions(definition);
    if (namespace !== '') refuseWhatCodeMustFind({ usage: common.usage, ...options }, location);
    const reserveFor = reserveTerms(common, location);
    const settings: Omit<LimitSettings, 'location'> = {
      namespace,
      name,
      nameEnd: this.nameEnd(key, count),
      ...blockTerms(common, location),
      prefetch: prefetchTerms(common, location),
      reserveFor,
      usage: usageTerms({ ...common, timezone: (options as { timezone?: unknown }).timezone }, location),
      shared: plan && { floor: plan.floor },
      parent: parentName(common, location),
      ...borrowTerms(common, location),
      candidate: candidateOptions(definition, common.candidate, location, COMMON),
      // Requests that may not count in the end, or cost something else, give units back at any time.
      // And what one tenant is refused, another one may have.
      remembersRefusals: count === 'all' && cost === undefined && plan === undefined,
      instance: oneOf(location, 'scope', orElse(common.scope, 'cluster'), ['cluster', 'instance']) === 'instance',
      shadow: oneOf(location, 'mode', mode, ['enforce', 'shadow']) === 'shadow' || this.settings.shadow,
      nearLimit: common.nearLimit,
      onStoreError: storeErrorPolicy(location, orElse(common.onStoreError, onStoreError)),
      generation,
      carry,
      off,
    };
    const limit = this.limits.of([options, settings], () => {
      const compiled = new CompiledLimit(options, { location, ...settings });
      // Stricter parameters are for stores that hand out units in advance, which only Redis has a layer for.
      return this.prefetches || compiled.prefetch === undefined ? compiled : compiled.withoutPrefetch();
    });
    return new Rule(limit, {
      key,
      byAddress: this.keys.byAddress(ipv6Prefix),
      onMissingKey: oneOf(location, 'onMissingKey', orElse(common.onMissingKey, onMissingKey), ON_MISSING_KEY),
      phase: everywhere && phase === 'middleware' ? phase : oneOf(location, 'phase', phase, ['guard', 'authenticated']),
      cost: typeof cost === 'function' ? cost : wholeNumber(location, 'cost', orElse(cost, 1)),
      hasCost: cost !== undefined,
      prefetches: common.prefetch !== undefined,
      // Where it matters to nobody, nobody is asked.
      priority: reserveFor !== undefined || adapts ? priority : undefined,
      share,
      anchor: asksForAnchor(options) ? options.anchor : undefined,
      count,
      skip,
      answer: { message, body: orElse(body, this.settings.body) },
      perRoute,
      unnamed: name === undefined,
      log: this.log,
    });
  }

  /** What tells limits of one rate apart that count others, or other requests. */
  private nameEnd({ given, name }: BoundKey, count: Count): string {
    const { key: usualKey = 'ip', count: usualCount = 'all' } = this.defaults;
    const counted = typeof count === 'function' ? 'custom' : count;
    return (given === usualKey ? '' : `:${name}`) + (count === usualCount ? '' : `:${counted}`);
  }
}

/** What a limit says, and of what it says nothing, what all of the app have. */
function withDefaults(own: AllCommonOptions, defaults: LimitDefaults): AllCommonOptions {
  const hasOneBlock = own.blockFor !== undefined && !Array.isArray(own.blockFor);
  const left = Object.entries(defaults).filter(
    // Where blocks have no steps there is nothing to forget.
    ([option]) => own[option as keyof LimitDefaults] === undefined && !(option === 'forgetAfter' && hasOneBlock),
  );
  return Object.assign(own, Object.fromEntries(left));
}

/** Says what a `key` can be in a middleware. */
function earlyForms(): string {
  return `${formsOf(keySchemes.filter(({ needsRoute }) => !needsRoute))} in phase 'middleware'`;
}

/** A middleware sees a request before anything is known of it but its address and its headers. */
function refuseWhatNeedsARoute(
  key: BoundKey,
  { cost, share, skip, within, perRoute }: AllCommonOptions,
  location: string,
  everywhere: boolean,
): void {
  const refuse = (option: string, got: unknown, wants: string) => {
    throw new RateLimitConfigError(messages.wrongOption(location, option, got, wants));
  };
  if (!everywhere) refuse('phase', 'middleware', "guard or authenticated (middleware only in the module's 'limits')");
  if (key.needsRoute) refuse('key', key.given, earlyForms());
  if (typeof cost === 'function') refuse('cost', cost, "a whole number >= 1 in phase 'middleware'");
  if (share !== undefined) refuse('share', share, "nothing in phase 'middleware'");
  if (skip !== undefined) refuse('skip', skip, "nothing in phase 'middleware'");
  if (within !== undefined) refuse('within', within, "nothing in phase 'middleware'");
  if (perRoute === true) refuse('perRoute', perRoute, "false in phase 'middleware'");
}

/** Records are read, and credits added, by the name of a limit that has one everywhere. */
function refuseWhatCodeMustFind(options: object, location: string): void {
  for (const option of ['usage', 'credits']) {
    if ((options as Record<string, unknown>)[option] === undefined) continue;
    throw new RateLimitConfigError(usageMessages.noName(location, option));
  }
}

/** How much fits is known here alone, and what is in flight counts, however it ends. */
function refuseWhatIsCountedElsewhere(own: AllCommonOptions, algo: string, location: string): void {
  for (const option of NOT_ADAPTIVE) {
    if (own[option] !== undefined) throw new RateLimitConfigError(messages.notWith(location, option, algo));
  }
}

/** The common options are no algorithm's business. */
export function algorithmOptions(definition: LimitDefinition): AlgorithmOptions {
  const own = Object.entries(definition)
    .filter(([option]) => !COMMON.includes(option as CommonOption))
    // Equal dates make equal limits.
    .map(([option, value]: [string, unknown]) => [option, value instanceof Date ? value.getTime() : value]);
  return Object.assign(Object.create(null) as AlgorithmOptions, Object.fromEntries(own));
}

/** Options that no algorithm knows are spelling mistakes; those of another algorithm are `CompiledLimit`'s to refuse. */
function refuseUnknownOptions(definition: LimitDefinition, location: string): void {
  const algorithm = algorithms.get(definition.algo);
  if (algorithm === undefined) return;
  const all = new Set<string>(['algo', ...COMMON, ...algorithms.options]);
  for (const option of Object.keys(definition)) {
    if (all.has(option)) continue;
    throw new RateLimitConfigError(messages.unknownOption(location, option, [...algorithm.options, ...COMMON]));
  }
}
