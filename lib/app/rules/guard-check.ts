import { Inject, Injectable, Optional } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { RATE_LIMIT_GUARD_OPTION } from '../config/tokens.js';
import { moduleLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { isOwnGuard } from './bound-guards.js';

/** The provider under which `@nestjs/graphql` keeps the options of its module. */
const GRAPHQL_OPTIONS = 'GqlModuleOptions';

interface GraphqlOptions {
  readonly fieldResolverEnhancers?: readonly string[];
}

/** Checks at start-up whether the guard sees all that it has to see, given the guards of the app. */
@Injectable()
export class GuardCheck {
  private knownOthers: boolean | undefined;

  constructor(
    @Optional() @Inject(RATE_LIMIT_GUARD_OPTION) private readonly option: boolean | 'custom' | undefined,
    private readonly config: ApplicationConfig,
    private readonly modules: ModulesContainer,
  ) {}

  /** Whether the guard runs for every route, or the app takes care of that itself. */
  get isEverywhere(): boolean {
    if (this.option !== false) return true;
    return this.isBoundByName || this.globalGuards().some(isOwnGuard);
  }

  /** Whether the app binds it with `useExisting`, even if a test has replaced it. */
  private get isBoundByName(): boolean {
    return [...this.modules.values()].some(({ providers }) =>
      [...providers.values()].some(
        ({ isAlias, subtype, inject }) => isAlias && subtype === 'guard' && inject?.some(isOwnToken) === true,
      ),
    );
  }

  /** Whether the app has global guards besides ours, which may find the user of a request. It is final once Nest has made the routes. */
  get hasOthers(): boolean {
    return (this.knownOthers ??= this.globalGuards().some((guard) => !isOwnGuard(guard)));
  }

  private globalGuards(): object[] {
    const scoped = this.config.getGlobalRequestGuards().map(({ metatype }) => metatype as object | null);
    return [...this.config.getGlobalGuards(), ...scoped].filter((guard) => guard !== null);
  }

  /** Whether to look for routes without a guard. */
  get isEnabled(): boolean {
    return this.option !== 'custom';
  }

  /** Whether global guards reach gateways: before Nest 12 they do not. Checked through a policy that only Nest 12 has. */
  get reachesGateways(): boolean {
    return this.isEverywhere && 'getRouteConflictPolicy' in this.config;
  }

  /** Nest calls guards for fields only if the options of its GraphQL module say so. */
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
