import { Inject, Injectable } from '@nestjs/common';
import { algorithms } from '../algorithms/index.js';
import type { Count } from '../config/common-limit-options.js';
import type { LimitDefaults, LimitDefinition } from '../config/limit-definition.js';
import { COMMON_OPTIONS, isDefault, limitOptions, secondVersionOf } from '../config/limit-options.js';
import type { RateLimitSettings } from '../config/settings.js';
import { RATE_LIMIT_REDIS, RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { logger } from '../errors/logger.js';
import { messages } from '../errors/messages/general.js';
import { OnceLogger } from '../errors/once-logger.js';
import { childlessOption, featuresOfOptions, featureTerms, requestTraitOf } from '../features/index.js';
import { type BoundKey, KeyResolverFactory } from '../key-resolvers/key-resolver.factory.js';
import { blockTerms } from '../limits/block-terms.js';
import { CompiledLimit, type LimitSettings } from '../limits/compiled-limit.js';
import { type OptionRows, ownRow } from '../options/option-row.js';
import { refuseUnknown } from '../options/check-options.js';
import { givenOptions, orElse } from '../options/values.js';
import type { RedisClient } from '../redis/client.js';
import { ValueCache } from '../util/value-cache.js';
import { algorithmOptions, commonOptions } from './common-options.js';
import type { Declaration } from './declaration.js';
import { earlyForms, refuseWhatNeedsARoute } from './middleware-phase.js';
import { Rule } from './rule.js';

/** The options that the module's `defaults` can have. */
const DEFAULTS = COMMON_OPTIONS.filter((option) => isDefault(option)) as (keyof LimitDefaults)[];

/** Compiles limits as users write them. */
@Injectable()
export class RuleCompiler {
  private readonly defaults: LimitDefaults = givenOptions<LimitDefaults>({}, DEFAULTS);
  /** Equal limits share one object, so that stores can share what they know about them. */
  private readonly limits = new ValueCache<CompiledLimit>();
  private readonly log = new OnceLogger(logger);
  private readonly hasRedis: boolean;

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly keys: KeyResolverFactory,
    @Inject(RATE_LIMIT_REDIS) redis: RedisClient | undefined,
  ) {
    this.hasRedis = redis !== undefined;
    const { defaults } = settings.options;
    if (defaults === undefined) return;
    refuseUnknown('defaults', defaults, DEFAULTS);
    // Mistakes in the defaults are reported as such, and not for the first limit that uses them.
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
    const common = commonOptions(definition, this.defaults, location);
    const { name = givenName, cost, priority, skip, mode = 'enforce', message, body, count = 'all' } = common;
    const { perRoute = false } = common;
    if (perRoute && !everywhere && !onRoutes) {
      const wants = "false, but in the module's 'limits', on a class and on a route";
      throw new RateLimitConfigError(messages.wrongOption(location, 'perRoute', perRoute, wants));
    }
    const { onStoreError, onMissingKey, ipv6Prefix } = this.settings;
    const forms = everywhere && common.phase === 'middleware' ? earlyForms() : undefined;
    const key = this.keys.bind(orElse(common.key, adapts ? 'global' : 'ip'), location, ipv6Prefix, forms);
    const options = algorithmOptions(definition);
    const given = merged(options, common);
    const trait = requestTraitOf(given, location, (by, place, option) =>
      this.keys.bind(by, place, ipv6Prefix, undefined, option),
    );
    const needsUser = key.needsUser || (typeof trait?.by === 'object' && trait.by.needsUser);
    const { phase = needsUser ? 'authenticated' : 'guard' } = common;
    if (phase === 'middleware') refuseWhatNeedsARoute(key, common, trait, location, everywhere);
    if (namespace !== '') refuseWhatCodeMustFind(given, location);
    const settings: Omit<LimitSettings, 'location'> = {
      namespace,
      name,
      nameEnd: this.nameEnd(key, count),
      ...blockTerms(common, location),
      features: featureTerms(given, location),
      featuresOfOptions,
      replicas: common.replicas ?? 0,
      parent: common.within,
      candidate: secondVersionOf(merged(definition, common), location),
      // Requests that may not count in the end, or cost something else, give units back at any time.
      remembersRefusals: count === 'all' && cost === undefined,
      instance: common.scope === 'instance',
      shadow: mode === 'shadow' || this.settings.shadow,
      nearLimit: common.nearLimit,
      onStoreError: common.onStoreError ?? onStoreError,
      generation,
      carry,
      off,
    };
    const limit = this.limits.of([options, settings], () => {
      const compiled = new CompiledLimit(options, { location, ...settings });
      return this.hasRedis ? compiled : compiled.withoutRedis();
    });
    return new Rule(limit, {
      key,
      hasKey: definition.key !== undefined,
      ipv6Prefix,
      byAddress: this.keys.byAddress(ipv6Prefix),
      onMissingKey: common.onMissingKey ?? onMissingKey,
      addressIsMeant: (common.onMissingKey ?? this.settings.options.onMissingKey) !== undefined,
      onMissingReader: this.settings.onMissingReader,
      phase: phase,
      cost: cost ?? 1,
      hasCost: cost !== undefined,
      childless: childlessOption(given, location),
      // If it does not matter, it is not computed.
      priority: limit.keepsUnits || adapts ? priority : undefined,
      trait,
      count,
      skip,
      answer: { message, body: orElse(body, this.settings.body) },
      perRoute,
      unnamed: name === undefined,
      log: this.log,
    });
  }

  /** What distinguishes limits of one rate that count by other keys, or other requests. */
  private nameEnd({ given, name }: BoundKey, count: Count): string {
    const { key: usualKey = 'ip', count: usualCount = 'all' } = this.defaults;
    const counted = typeof count === 'function' ? 'custom' : count;
    return (given === usualKey ? '' : `:${name}`) + (count === usualCount ? '' : `:${counted}`);
  }
}

/** Both options in one object, without a prototype, to which other code may have written. */
function merged<A extends object, B extends object>(options: A, more: B): A & B {
  return Object.assign(Object.create(null) as object, options, more);
}

/** Records are read, and credits added, through the name of a limit, which must be the same everywhere. */
function refuseWhatCodeMustFind(options: object, location: string): void {
  const rows: OptionRows = { ...limitOptions, ...algorithms.options };
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || !Object.hasOwn(rows, option) || ownRow(rows[option]!).needsName !== true) continue;
    throw new RateLimitConfigError(messages.noName(location, option));
  }
}
