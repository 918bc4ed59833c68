import { type DynamicModule, type FactoryProvider, Module, type Provider } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { getLimiterToken } from '../app/config/tokens.js';
import type { LimitDefinition } from '../app/config/limit-definition.js';
import { messages } from '../engine/errors/messages/general.js';
import { missingModule } from './copies.js';
import { LimiterService } from './limiter.service.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';

/** The limits of one `forFeature`, by name. */
export type FeatureDefinitions = Readonly<Record<string, LimitDefinition>>;

const DEFINITIONS = 'nestjs-sluice:feature:';

/** Contains the definitions of one `forFeature`. */
@Module({})
export class RateLimitFeatureModule {
  /** @internal */
  static of(definitions: FeatureDefinitions): DynamicModule {
    const names = Object.keys(definitions);
    const limiters = names.map(limiterProvider);
    const providers: Provider[] = [
      // The names are part of the token, so that Nest distinguishes modules that are otherwise equal.
      { provide: `${DEFINITIONS}${JSON.stringify(names)}`, useValue: definitions },
      // Defines the limits of a lazily loaded module, which the registry does not find on its own.
      {
        provide: 'nestjs-sluice:defined',
        useFactory: (registry: LimitRegistry | undefined) => ofModule(registry).define(definitions, 'forFeature'),
        inject: [{ token: LimitRegistry, optional: true }],
      },
      ...limiters,
    ];
    return { module: RateLimitFeatureModule, providers, exports: names.map(getLimiterToken) };
  }

  /** @internal The definitions of all features in Nest's container. */
  static *all(modules: ModulesContainer): Iterable<FeatureDefinitions> {
    for (const { metatype, providers } of modules.values()) {
      if (metatype !== RateLimitFeatureModule) continue;
      for (const { token, instance } of providers.values()) {
        if (typeof token === 'string' && token.startsWith(DEFINITIONS)) yield instance as FeatureDefinitions;
      }
    }
  }
}

/** Provides the `Limiter` of a name, which is looked up at first use. */
export function limiterProvider(name: string): FactoryProvider {
  return {
    provide: getLimiterToken(name),
    useFactory: (service: LimiterService | undefined) => ofModule(service).lazily(name),
    inject: [{ token: LimiterService, optional: true }],
  };
}

/** A provider of `RateLimitModule`. Throws `RateLimitConfigError` if only `forFeature` is imported. */
function ofModule<T>(provider: T | undefined): T {
  if (provider !== undefined) return provider;
  const location = 'RateLimitModule.forFeature';
  throw missingModule(location, messages.notSetUp(location));
}
