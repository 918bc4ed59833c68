import { show, wrongInput } from '../wording.js';

/** The messages of GraphQL limits per operation. */
export const graphqlMessages = {
  noServer: () =>
    `RateLimitGraphqlModule: no Apollo Server of @nestjs/apollo and no Mercurius of @nestjs/mercurius was found, so operations are decided when a guard reaches their first field, and their cost is not reported`,
  loadedLazily: () => 'RateLimitGraphqlModule is loaded lazily: import it before the app starts',
  noRateLimitModule: () => `RateLimitGraphqlModule: RateLimitModule was not found. Add it to the imports of the app`,
  wrongDirective: (place: string, directive: string, argument: string, received: unknown, expected: string) =>
    wrongInput(`${place}: argument '${argument}' of ${directive}`, expected, received),
  noArgument: (place: string, received: string, known: readonly string[]) =>
    wrongInput(
      `${place}: slicingArguments of @listSize`,
      `one of the field's arguments (${known.join(', ') || 'it has none'})`,
      received,
    ),
  leased: (location: string, limit: string, algo: string) =>
    `${location}: limit '${limit}' has algo '${algo}', but points are not held. Use a limit that counts units`,
  countsSome: (location: string, limit: string) =>
    `${location}: limit '${limit}' has the option 'count', but points are settled by the result. Use a limit that counts all requests`,
  measures: (location: string, limit: string) =>
    `${location}: limit '${limit}' has a cost by bytes or duration, but points are settled by the result. Use a limit with another 'cost'`,
  weightFailed: (field: string) =>
    `RateLimitGraphqlModule: cost.weight failed for ${field}; the field has its default weight`,
  wrongWeight: (received: unknown) => `expected a number >= 0 or undefined, received ${show(received)}`,
} as const;
