import { show } from '../wording.js';

/** The messages of GraphQL by operation. */
export const graphqlMessages = {
  noServer: () =>
    `RateLimitGraphqlModule: no Apollo Server of @nestjs/apollo and no Mercurius of @nestjs/mercurius was found; operations are decided when a guard sees their first field, and their cost is not reported`,
  noRateLimitModule: () =>
    `RateLimitGraphqlModule: RateLimitModule was not found, wants it among the imports of the app`,
  wrongDirective: (place: string, directive: string, argument: string, got: unknown, wants: string) =>
    `${place}: argument '${argument}' of ${directive} is ${show(got)}, wants ${wants}`,
  noArgument: (place: string, got: string, known: readonly string[]) =>
    `${place}: slicingArguments of @listSize names '${got}', wants one of the field's arguments: ${known.join(', ') || 'it has none'}`,
  leased: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' is a ${algo} limit, wants one that counts units: points are not held`,
  countsSome: (location: string, limit: string) =>
    `${location}: limit '${limit}' has the option 'count', wants one that counts all requests: points are settled at what is returned`,
  weightFailed: (field: string) =>
    `RateLimitGraphqlModule: cost.weight failed for ${field}; the field has the weight that it would have without the function`,
  wrongWeight: (got: unknown) => `it returned ${show(got)}, wants a number >= 0 or undefined`,
} as const;
