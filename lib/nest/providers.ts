import type { Provider } from '@nestjs/common';
import { Explanations } from './explain/explanations.js';
import { Answers } from './request/answers.js';
import { Completions } from './request/completions.js';
import { DeniedAddresses } from './request/denied-addresses.js';
import { DelayedRequests } from './request/delayed-requests.js';
import { RequestCheck } from './request/request-check.js';
import { RejectedRequests } from './request/rejected-requests.js';
import { RequestLimiter } from './request/request-limiter.js';
import { Requests } from './request/requests.js';
import { ResponseHeaders } from './request/response-headers.js';
import { ThrownRefusals } from './request/thrown-refusals.js';
import { SlowReaders } from './request/slow-readers.js';
import { Transports } from './request/transports.js';
import { KeptClientAddresses, TrustedProxies } from './client-addresses.js';
import { RateLimitGuard, RateLimitInterceptor, ThrownRefusalsFilter } from './rate-limit.enhancers.js';
import { KeyResolverFactory } from '../app/key-resolvers/key-resolver.factory.js';
import { DeclaredLimits } from '../app/rules/declared-limits.js';
import { GuardCheck } from '../app/rules/guard-check.js';
import { HandlerClasses } from '../app/rules/handler-classes.js';
import { LimitResolvers } from '../app/rules/by-request/limit-resolvers.js';
import { LimitSources } from '../app/rules/by-request/limit-sources.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import { Namespaces } from '../app/rules/namespaces.js';
import { RefusalResolvers } from '../app/rules/refusal-resolvers.js';
import { RoutePaths } from '../app/rules/route-paths.js';
import { RouteRulesRegistry } from '../app/rules/route-rules-registry.js';
import { RuleCompiler } from '../app/rules/rule-compiler.js';
import { StartUpCheck } from '../app/rules/start-up-check.js';
import type { Policy } from '../app/config/policy.js';
import type { RateLimitSettings } from '../app/config/settings.js';
import { POLICY_SETTINGS, RATE_LIMIT_POLICIES, RATE_LIMIT_POLICY, RATE_LIMIT_SETTINGS } from '../app/config/tokens.js';
import { configError } from '../engine/errors/errors.js';
import { policyMessages } from '../engine/errors/messages/rates.js';
import { Overrides } from '../app/overrides/overrides.js';
import type { Policies } from '../app/policy/policies.js';
import type { PolicySettings } from '../app/policy/policy-settings.js';

/** Only loaded in apps with a policy. */
const load = () => import('../app/policy/policies.js');

/** The first version of the policy is read before the first limit. */
export const policyProviders: readonly Provider[] = [
  {
    provide: POLICY_SETTINGS,
    useFactory: async ({ options: { policy } }: RateLimitSettings) =>
      policy === undefined ? undefined : (await load()).readPolicySettings(policy),
    inject: [RATE_LIMIT_SETTINGS],
  },
  {
    provide: RATE_LIMIT_POLICY,
    useFactory: async (settings?: PolicySettings): Promise<Policy | undefined> => {
      if (settings === undefined) return undefined;
      const reading = await settings.source.read();
      if ('policy' in reading) return reading.policy;
      const { showProblem } = await load();
      throw configError('SLUICE_INVALID_POLICY', policyMessages.refused(reading.problems.map(showProblem)));
    },
    inject: [POLICY_SETTINGS],
  },
  {
    provide: RATE_LIMIT_POLICIES,
    useFactory: async (
      registry: LimitRegistry,
      compiler: RuleCompiler,
      overrides: Overrides,
      settings?: PolicySettings,
      policy?: Policy,
    ): Promise<Policies | undefined> =>
      settings && new (await load()).Policies(registry, compiler, overrides, settings, policy),
    inject: [LimitRegistry, RuleCompiler, Overrides, POLICY_SETTINGS, RATE_LIMIT_POLICY],
  },
];

/** Turns limits into rules, and rules into the plan of each route. */
export const ruleProviders: readonly Provider[] = [
  KeyResolverFactory,
  RefusalResolvers,
  RuleCompiler,
  LimitRegistry,
  Namespaces,
  RoutePaths,
  HandlerClasses,
  LimitResolvers,
  LimitSources,
  RouteRulesRegistry,
  DeclaredLimits,
  GuardCheck,
  StartUpCheck,
];

/** The steps of a request: read, check, respond and complete. */
export const requestProviders: readonly Provider[] = [
  Transports,
  KeptClientAddresses,
  TrustedProxies,
  Requests,
  ResponseHeaders,
  Answers,
  DeniedAddresses,
  RequestCheck,
  DelayedRequests,
  SlowReaders,
  Completions,
  RequestLimiter,
  RejectedRequests,
  Explanations,
  ThrownRefusals,
  ThrownRefusalsFilter,
  RateLimitGuard,
  RateLimitInterceptor,
];
