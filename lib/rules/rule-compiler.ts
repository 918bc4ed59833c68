import { Inject, Injectable } from '@nestjs/common';
import { asksForAnchor } from '../algorithms/anchor.js';
import { algorithms } from '../algorithms/index.js';
import { givenOptions, oneOf, orElse, wholeNumber } from '../algorithms/options.js';
import type { Count } from '../config/common-limit-options.js';
import type { LimitDefaults, LimitDefinition } from '../config/limit-definition.js';
import { ON_MISSING_KEY, type RateLimitSettings, storeErrorPolicy } from '../config/settings.js';
import { RATE_LIMIT_REDIS, RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages/general.js';
import { OnceLogger } from '../errors/once-logger.js';
import { featureTerms, NAMED_OPTIONS } from '../features/index.js';
import { type BoundKey, KeyResolverFactory } from '../key-resolvers/key-resolver.factory.js';
import { blockTerms } from '../limits/block-terms.js';
import { CompiledLimit, type LimitSettings } from '../limits/compiled-limit.js';
import { reserveTerms } from '../limits/reserve-terms.js';
import type { RedisClient } from '../redis/client.js';
import { ValueCache } from '../util/value-cache.js';
import { borrowTerms } from './borrow-terms.js';
import { candidateOptions } from './candidate-options.js';
import { algorithmOptions, COMMON, commonOptions, DEFAULTS } from './common-options.js';
import type { Declaration } from './declaration.js';
import { earlyForms, refuseWhatNeedsARoute } from './middleware-phase.js';
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
import { prefetchTerms } from './prefetch-terms.js';
import { replicaTerms } from './replica-terms.js';
import { Rule } from './rule.js';
import { shareTerms } from './share-terms.js';
import { parentName } from './within-terms.js';

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
    const {
      location,
      namespace,
      everywhere = false,
      onRoutes = false,
      generation = 0,
      carry,
      off = false,
    } = declaration;
    const { name: givenName } = givenOptions(declaration, ['name']);
    if (typeof definition !== 'object' || definition === null || Array.isArray(definition)) {
      throw new RateLimitConfigError(messages.notALimit(location, definition));
    }
    const adapts = algorithms.get(definition.algo)?.adapting !== undefined;
    const common = commonOptions(definition, this.defaults, adapts, location);
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
      "false, but in the module's 'limits', on a class and on a route",
      (value) => value === false || everywhere || onRoutes,
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
    if (namespace !== '') refuseWhatCodeMustFind({ ...common, ...options }, location);
    const reserveFor = reserveTerms(common, location);
    const settings: Omit<LimitSettings, 'location'> = {
      namespace,
      name,
      nameEnd: this.nameEnd(key, count),
      ...blockTerms(common, location),
      prefetch: prefetchTerms(common, location),
      reserveFor,
      features: featureTerms({ ...options, ...common }, location),
      replicas: replicaTerms(common, location),
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
      hasKey: definition.key !== undefined,
      ipv6Prefix,
      byAddress: this.keys.byAddress(ipv6Prefix),
      onMissingKey: oneOf(location, 'onMissingKey', orElse(common.onMissingKey, onMissingKey), ON_MISSING_KEY),
      addressIsMeant: (common.onMissingKey ?? this.settings.options.onMissingKey) !== undefined,
      onMissingReader: this.settings.onMissingReader,
      phase: everywhere && phase === 'middleware' ? phase : oneOf(location, 'phase', phase, ['guard', 'authenticated']),
      cost: typeof cost === 'function' ? cost : wholeNumber(location, 'cost', orElse(cost, 1), { min: 0 }),
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

/** Records are read, and credits added, by the name of a limit that has one everywhere. */
function refuseWhatCodeMustFind(options: object, location: string): void {
  for (const option of [...NAMED_OPTIONS, 'credits']) {
    if ((options as Record<string, unknown>)[option] === undefined) continue;
    throw new RateLimitConfigError(messages.noName(location, option));
  }
}
