import { Inject, Injectable, Optional } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { moduleLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { RATE_LIMIT_GUARD_OPTION } from '../config/tokens.js';

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
    const isReached = options.some(({ fieldResolverEnhancers = [] }) => fieldResolverEnhancers.includes('guards'));
    if (options.length === 0 || isReached) return;
    moduleLogger.warn(messages.unreachedFields(fields));
  }
}

function isOwnToken(token: unknown): boolean {
  return typeof token === 'function' && isOwnGuard(token);
}

/**
 * Marks this library's guards, which never set a user: `true` if the guard checks limits, `'follows'` if it only continues a check, and
 * `'shared'` if it checks limits in apps that bind a guard to all routes.
 */
export const OWN_GUARD = 'nestjs-sluice:guard';

/** The metadata key of `@UseGuards`, in Nest 11 and 12. */
export const GUARDS = '__guards__';

/** Returns true if a class or handler has guards of the app, which may set a user. */
export function bindsOtherGuard(target: object): boolean {
  return boundGuards(target).some((guard) => markOf(guard) === undefined);
}

/** Returns true if `RateLimitGuard` is bound to the class or handler itself. */
export function bindsOwnGuard(target: object): boolean {
  return boundGuards(target).some(isOwnGuard);
}

/** Returns true if a class or handler has a guard whose checks the interceptor has to continue. */
export function bindsCheckingGuard(target: object): boolean {
  return boundGuards(target).some((guard) => isOwnGuard(guard) || markOf(guard) === 'shared');
}

/** The guards that `@UseGuards` binds to a class or handler. */
export function boundGuards(target: object): readonly object[] {
  return (Reflect.getMetadata(GUARDS, target) as object[] | undefined) ?? [];
}

/** Returns true for `RateLimitGuard` and subclasses of it. */
function isOwnGuard(guard: object): boolean {
  return markOf(guard) === true;
}

function markOf(guard: object): unknown {
  // Tests may replace guards with plain objects.
  const type = typeof guard === 'function' ? guard : (guard.constructor as Function | undefined);
  return type === undefined ? undefined : Reflect.getMetadata(OWN_GUARD, type);
}
