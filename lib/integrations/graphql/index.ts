/**
 * Limits GraphQL operations: all limits of an operation are decided together, and operations can cost points.
 * @module nestjs-sluice/graphql
 */
export { type ApolloListener, RateLimitApolloPlugin } from './apollo.plugin.js';
export type { QueryCostOptions, RateLimitGraphqlOptions, WeighedField } from './cost/cost-options.js';
export type { CostReport, ThrottleStatus } from './cost/query-costs.js';
export { type RateLimitGraphqlAsyncOptions, RateLimitGraphqlModule } from './rate-limit-graphql.module.js';
