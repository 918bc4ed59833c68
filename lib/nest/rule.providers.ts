import type { Provider } from '@nestjs/common';
import { KeyResolverFactory } from '../key-resolvers/key-resolver.factory.js';
import { DeclaredLimits } from '../rules/declared-limits.js';
import { GuardCheck } from '../rules/guard-check.js';
import { HandlerClasses } from '../rules/handler-classes.js';
import { LimitResolvers } from '../rules/by-request/limit-resolvers.js';
import { LimitSources } from '../rules/by-request/limit-sources.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import { Namespaces } from '../rules/namespaces.js';
import { RefusalResolvers } from '../rules/refusal-resolvers.js';
import { RoutePaths } from '../rules/route-paths.js';
import { RouteRulesRegistry } from '../rules/route-rules-registry.js';
import { RuleCompiler } from '../rules/rule-compiler.js';
import { StartUpCheck } from '../rules/start-up-check.js';

/** Limits become rules, and rules become the plan of each route. */
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
