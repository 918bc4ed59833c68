import { Inject, Injectable } from '@nestjs/common';
import { type AlgorithmOptions, algorithms } from '../../engine/algorithms/index.js';
import { configError } from '../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { byRequestMessages } from '../../engine/errors/messages/app-code.js';
import { messages } from '../../engine/errors/messages/general.js';
import { regionMessages } from '../../engine/errors/messages/redis.js';
import { blockTerms } from '../../engine/limits/block-terms.js';
import type { LimitPlace, LimitSettings, OnStoreError } from '../../engine/limits/limit-settings.js';
import { type LikelySeconds, likelySeconds, refuseUnknown, wrongOption } from '../../engine/options/check-options.js';
import { ownParts } from '../../engine/options/option-row.js';
import { givenOptions, orElse } from '../../engine/options/values.js';
import { isPromise } from '../../engine/util/awaitable.js';
import { ValueCache } from '../../engine/util/bounded-maps.js';
import { bare } from '../../engine/util/objects.js';
import type { RequestTrait } from '../../storage/features/feature.js';
import { childlessOption, featuresOfOptions, featureTerms, requestTraitOf } from '../../storage/features/index.js';
import type { Connection } from '../../storage/redis/connection.js';
import type { Count, Scope } from '../config/common-limit-options.js';
import type { LimitDefaults, LimitDefinition } from '../config/limit-definition.js';
import {
  type AllCommonOptions,
  COMMON_OPTIONS,
  commonRows,
  isDefault,
  optionsOf,
  ownerOfOption,
  secondVersionOf,
} from '../config/limit-options.js';
import { type MeasuredCost, readMeasure } from '../config/measured-cost.js';
import type { RateLimitSettings } from '../config/settings.js';
import { RATE_LIMIT_REDIS, RATE_LIMIT_SETTINGS } from '../config/tokens.js';
import { DecisionHooks } from '../hooks/decision-hooks.js';
import type { RefusalAnswer, RefusalOption } from '../http/refusal-answer.js';
import { keySchemes } from '../key-resolvers/index.js';
import { type BoundKey, formsOf, KeyResolverFactory } from '../key-resolvers/key-resolver.factory.js';
import { isFixed } from '../config/limits-by-request.js';
import { algorithmOptions, commonOptions } from './common-options.js';
import type { Declaration } from './declaration.js';
import { LimitKind, LimitReading } from './limit-reading.js';
import { RefusalResolvers } from './refusal-resolvers.js';
import type { Rule, RuleSettings } from './rule.js';

const DEFAULTS = COMMON_OPTIONS.filter((option) => isDefault(option)) as (keyof LimitDefaults)[];

const NO_SECONDS: readonly LikelySeconds[] = [];

/** A placeholder for a rate that depends on the request. */
const DYNAMIC = 'dynamic';

/** Compiles limits as users write them. */
@Injectable()
export class RuleCompiler {
  private readonly defaults: LimitDefaults = givenOptions<LimitDefaults>({}, DEFAULTS);
  /** Equal limits are read once. Limits that differ only in the place where they count share a kind. */
  private readonly kinds = new ValueCache<LimitKind>();
  private readonly readings = new ValueCache<LimitReading>();
  private readonly log = new OnceLogger(logger);
  private readonly hasRedis: boolean;

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    private readonly keys: KeyResolverFactory,
    @Inject(RATE_LIMIT_REDIS) redis: Connection | undefined,
    private readonly hooks: DecisionHooks,
    private readonly refusals: RefusalResolvers,
  ) {
    hooks.observeAll(settings.options);
    this.hasRedis = redis !== undefined;
    const { defaults } = settings.options;
    if (defaults === undefined) return;
    refuseUnknown('defaults', defaults, DEFAULTS, ownerOfOption);
    // Errors in the defaults are reported here, instead of at the first limit that uses them.
    const limit: LimitDefinition = { ...defaults, algo: 'fixed-window', rate: 1, interval: '1s' };
    const declaration = { location: 'defaults', namespace: '' };
    this.declared(this.readAnew(limit, declaration), declaration);
    this.defaults = givenOptions(defaults, DEFAULTS);
  }

  compile(definition: LimitDefinition, declaration: Declaration): Rule {
    return this.declared(this.read(definition, declaration), declaration);
  }

  /** Reads the parts of a limit that don't depend on its place. Equal limits are read once. Throws `RateLimitConfigError`. */
  read(definition: LimitDefinition, declaration: Declaration): LimitReading {
    const { location, everywhere, onRoutes, rate, generation, carry, off } = declaration;
    const { name } = givenOptions(declaration, ['name']);
    refuseOther(definition, location);
    if (!isFixed(definition)) {
      const { rate: found } = definition as { readonly rate: unknown };
      throw wrongOption(location, 'rate', found, byRequestMessages.notByRequest);
    }
    const asked = [definition, name, everywhere, onRoutes, rate, generation, carry, off];
    return this.readings.of(asked, () => this.readAnew(definition, declaration));
  }

  /** The rule of a limit for the place of its declaration. Throws `RateLimitConfigError`. */
  declared(reading: LimitReading, { location, namespace, onRoutes }: Declaration): Rule {
    if (namespace !== '' && reading.needsName !== undefined) {
      throw configError('SLUICE_UNSUPPORTED_OPTION', messages.noName(location, reading.needsName));
    }
    return reading.rule({ location, namespace }, onRoutes === true);
  }

  private readAnew(definition: LimitDefinition, declaration: Declaration): LimitReading {
    const { location, everywhere = false, onRoutes = false, generation = 0, carry, off = false } = declaration;
    const { name: givenName, rate } = givenOptions(declaration, ['name', 'rate']);
    const algorithm = algorithms.get(definition.algo);
    const common = commonOptions(definition, this.defaults, location);
    const { cost, priority, mode = 'enforce', message, body, count = 'all' } = common;
    const { perRoute = false } = common;
    const measure = readMeasure(cost, algorithm, location);
    if (perRoute && !everywhere && !onRoutes) {
      const expected = "false, but in the module's 'limits', on a class and on a route";
      throw wrongOption(location, 'perRoute', perRoute, expected);
    }
    const { onMissingKey, ipv6Prefix } = this.settings;
    const forms = everywhere && common.phase === 'middleware' ? earlyForms() : undefined;
    const key = this.keys.bind(
      orElse(common.key, algorithm?.adapting === undefined ? 'ip' : 'global'),
      location,
      ipv6Prefix,
      forms,
    );
    const options = algorithmOptions(definition);
    const unnamed = (common.name ?? givenName) === undefined;
    const name = common.name ?? givenName ?? (rate && this.dynamicName(options, key, count));
    const given = merged(options, common);
    const trait = requestTraitOf(given, location, (by, place, option) =>
      this.keys.bind(by, place, ipv6Prefix, undefined, option),
    );
    const needsUser = key.needsUser || (typeof trait?.by === 'object' && trait.by.needsUser);
    const { phase = needsUser ? 'authenticated' : 'guard' } = common;
    if (phase === 'middleware') refuseWhatNeedsARoute(key, common, trait, location, everywhere);
    const terms = bare<Omit<LimitSettings, keyof LimitPlace>>({
      name,
      nameEnd: this.nameEnd(key, count),
      ...blockTerms(common, location),
      countsRefused: common.countRefused ?? false,
      features: featureTerms(given, location),
      featuresOfOptions,
      replicas: common.replicas ?? 0,
      parent: common.within,
      hidden: common.hidden === true,
      withoutRetryAfter: !orElse(common.retryAfter, this.settings.retryAfter),
      hooks: this.hooks.bind(common, location),
      candidate: secondVersionOf(merged(definition, common), location),
      // If a request may not count in the end, or may turn out to cost less, units can come back at any time.
      remembersRefusals: count === 'all' && cost === undefined,
      instance: common.scope === 'instance',
      shadow: mode === 'shadow' || this.settings.shadow,
      nearLimit: common.nearLimit,
      unit: common.unit,
      bytesPerUnit: measure?.by === 'bytes' ? measure.per : undefined,
      onStoreError: common.onStoreError ?? this.storeErrorPolicy(common.scope, location),
      generation,
      carry,
      off,
    });
    const makeKind = () => new LimitKind(options, terms, this.hasRedis);
    // Only functions make equal limits again and again, which may differ in their callbacks.
    const kind = onRoutes ? makeKind() : this.kinds.of([options, terms], makeKind);
    const settings: RuleSettings = {
      key,
      hasKey: definition.key !== undefined,
      ipv6Prefix,
      byAddress: this.keys.byAddress(ipv6Prefix),
      onMissingKey: common.onMissingKey ?? onMissingKey,
      addressIsMeant: (common.onMissingKey ?? this.settings.options.onMissingKey) !== undefined,
      onMissingReader: this.settings.onMissingReader,
      phase,
      cost: measure?.estimate ?? (cost as Exclude<typeof cost, MeasuredCost>) ?? 1,
      measure,
      hasCost: cost !== undefined,
      childless: childlessOption(given, location),
      priority,
      trait,
      count,
      options: common,
      answer: {
        message,
        body: orElse(body, this.settings.body),
        status: common.status,
        resolve: this.answerOf(common.answer, location),
      },
      perRoute,
      unnamed,
      rate,
      log: this.log,
    };
    const seconds = algorithm === undefined ? [] : likelySeconds(definition, optionsOf(algorithm));
    const needsName = optionThatNeedsName(given);
    return new LimitReading(kind, needsName, seconds.length === 0 ? NO_SECONDS : seconds, settings);
  }

  /**
   * The module's policy for store failures. Without one, a limit that spans regions rejects everything while its store fails, because other
   * regions may have used up the quota.
   */
  private storeErrorPolicy(scope: Scope | undefined, location: string): OnStoreError {
    const { options, onStoreError, regions } = this.settings;
    if (scope !== 'world' || !this.hasRedis) return onStoreError;
    if (regions === undefined) throw configError('SLUICE_MISSING_OPTION', regionMessages.noRegions(location));
    return options.onStoreError ?? 'deny';
  }

  private answerOf(answer: RefusalOption | undefined, location: string): RefusalAnswer['resolve'] {
    if (answer !== undefined) return this.refusals.bind(answer, { location, option: 'answer' });
    const ofModule = this.settings.options.answer;
    return ofModule && this.refusals.bind(ofModule, { location: 'RateLimitModule', option: 'answer' });
  }

  /** The default name of a limit whose rate is a function. It is the same for all rates. */
  private dynamicName(options: AlgorithmOptions, key: BoundKey, count: Count): string | undefined {
    const name = algorithms.get(options.algo)?.defaultName({ ...options, rate: DYNAMIC } as never);
    return name && name + this.nameEnd(key, count);
  }

  /** The end of a default name, which distinguishes limits of the same rate with different keys or counts. */
  private nameEnd({ given, name }: BoundKey, count: Count): string {
    const { key: usualKey = 'ip', count: usualCount = 'all' } = this.defaults;
    const counted = typeof count === 'function' ? 'custom' : count;
    return (given === usualKey ? '' : `:${name}`) + (count === usualCount ? '' : `:${counted}`);
  }
}

/** Throws if a value isn't a limit, with a suggestion of what it may have been meant as. */
function refuseOther(given: unknown, location: string): void {
  const isObject = typeof given === 'object' && given !== null;
  // A property that other code added to `Object.prototype` doesn't make a limit a class.
  const isPlain = isObject && Object.getPrototypeOf(given) === Object.prototype && !Object.hasOwn(given, 'resolve');
  if (
    isObject &&
    !isPlain &&
    !Object.hasOwn(given, 'algo') &&
    typeof (given as { resolve?: unknown }).resolve === 'function'
  ) {
    throw configError('SLUICE_INVALID_LIMIT', byRequestMessages.instance(location, given));
  }
  if (!isObject || Array.isArray(given) || isPromise(given)) {
    throw configError('SLUICE_INVALID_LIMIT', messages.notALimit(location, given));
  }
}

/** Merges options into an object without a prototype, because other code may have extended `Object.prototype`. */
function merged<A extends object, B extends object>(options: A, more: B): A & B {
  return bare({ ...options, ...more });
}

/** The first option, if any, that requires a name that is the same everywhere, because code finds stored values by that name. */
function optionThatNeedsName(options: object): string | undefined {
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const rows = [algorithms.options, commonRows].find((each) => Object.hasOwn(each, option));
    if (rows !== undefined && ownParts(rows[option]!).needsName === true) return option;
  }
  return undefined;
}

/** The `key` options that a middleware supports, for messages. */
function earlyForms(): string {
  return `${formsOf(keySchemes.filter(({ needsRoute }) => !needsRoute))} in phase 'middleware'`;
}

/**
 * Throws `RateLimitConfigError` if a limit needs something that a middleware can't know. It runs before the route and the user are known,
 * so functions receive the request as it is at that point.
 */
function refuseWhatNeedsARoute(
  key: BoundKey,
  options: AllCommonOptions,
  trait: RequestTrait<BoundKey> | undefined,
  location: string,
  everywhere: boolean,
): void {
  const { within, perRoute } = options;
  const refuse = (option: string, got: unknown, expected: string) => {
    throw wrongOption(location, option, got, expected);
  };
  if (!everywhere) refuse('phase', 'middleware', "guard or authenticated (middleware only in the module's 'limits')");
  if (key.needsRoute) refuse('key', key.given, earlyForms());
  if (typeof trait?.by === 'object')
    refuse(trait.option, (options as Record<string, unknown>)[trait.option], "nothing in phase 'middleware'");
  if (within !== undefined) refuse('within', within, "nothing in phase 'middleware'");
  if (perRoute === true) refuse('perRoute', perRoute, "false in phase 'middleware'");
}
