import type { Provider } from '@nestjs/common';
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
