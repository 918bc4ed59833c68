import { Inject, Injectable, Optional } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { RATE_LIMIT_GUARD_OPTION } from '../config/tokens.js';
import { moduleLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isOwnGuard } from './bound-guards.js';

/** The provider in which `@nestjs/graphql` stores the options of its module. */
const GRAPHQL_OPTIONS = 'GqlModuleOptions';

interface GraphqlOptions {
  readonly fieldResolverEnhancers?: readonly string[];
}

/** Checks at start-up that the guard runs for every route with limits. */
@Injectable()
export class GuardCheck {
  private knownOthers: boolean | undefined;

  constructor(
    @Optional() @Inject(RATE_LIMIT_GUARD_OPTION) private readonly option: boolean | 'custom' | undefined,
    private readonly config: ApplicationConfig,
    private readonly modules: ModulesContainer,
  ) {}

  /** True if the guard runs for every route: the module or the app has bound it globally. */
  get isEverywhere(): boolean {
    if (this.option !== false) return true;
    return this.isBoundByName || this.globalGuards().some(isOwnGuard);
  }

  /** True if the app binds it with `useExisting`, even if a test has replaced it. */
  private get isBoundByName(): boolean {
    return [...this.modules.values()].some(({ providers }) =>
      [...providers.values()].some(
        ({ isAlias, subtype, inject }) => isAlias && subtype === 'guard' && inject?.some(isOwnToken) === true,
      ),
    );
  }

  /** True if the app has other global guards, which may set the user of a request. The result is final once Nest has created the routes. */
  get hasOthers(): boolean {
    return (this.knownOthers ??= this.globalGuards().some((guard) => !isOwnGuard(guard)));
  }

  private globalGuards(): object[] {
    const scoped = this.config.getGlobalRequestGuards().map(({ metatype }) => metatype as object | null);
    return [...this.config.getGlobalGuards(), ...scoped].filter((guard) => guard !== null);
  }

  /** True if start-up should look for routes without a guard. */
  get isEnabled(): boolean {
    return this.option !== 'custom';
  }

  /** True if global guards also run for gateways, which is the case from Nest 12 on. Detected by a policy that only Nest 12 has. */
  get reachesGateways(): boolean {
    return this.isEverywhere && 'getRouteConflictPolicy' in this.config;
  }

  /** Nest only calls guards for fields if the options of its GraphQL module enable that. */
  warnOfFields(fields: readonly string[]): void {
    if (fields.length === 0) return;
    const options = [...this.modules.values()]
      .map(({ providers }) => providers.get(GRAPHQL_OPTIONS)?.instance as GraphqlOptions | null | undefined)
      .filter((each) => each !== undefined && each !== null);
    if (options.length === 0 || options.some(letsGuardsReachFields)) return;
    moduleLogger.warn(messages.unreachedFields(fields));
  }
}

function isOwnToken(token: unknown): boolean {
  return typeof token === 'function' && isOwnGuard(token);
}

function letsGuardsReachFields({ fieldResolverEnhancers = [] }: GraphqlOptions): boolean {
  return fieldResolverEnhancers.includes('guards');
}
