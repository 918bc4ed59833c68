import { show } from '../wording.js';

/** The messages of limits that functions and classes find by the request. */
export const byRequestMessages = {
  /** `location` with the route whose request asks. */
  onRoute: (location: string, route: string) => `${location} for ${route}`,
  instance: (location: string, got: object) =>
    `${location}: got ${show(got)}, wants a limit; of a class that finds limits, the module's 'limits' and @RateLimit take the ` +
    'class itself, and a provider of a module gives the instance',
  noAnswer: (location: string) =>
    `${location}: the function gave undefined, wants a limit, a name, several of these, or null for none on purpose`,
  slow: (location: string, ms: number) =>
    `${location}: the function gave nothing within ${ms} ms, wants an answer in time; option 'resolveTimeout' of the module says how long`,
  failed: (location: string) => `${location}: the function failed, and so does the request`,
  lookUpFailed: (resolver: string, applies: 'last' | 'fallback' | 'nothing') =>
    `${resolver}.resolve failed, so ${
      {
        last: 'its last good answer applies to the key',
        fallback: "its 'fallback' applies to keys without a good answer",
        nothing: "requests of keys without a good answer fail; a 'fallback' would apply to them",
      }[applies]
    }`,
  noResolverOfApp: (got: unknown) =>
    `LimiterService.forgetResolved: expected a class that finds limits of this app, received ${show(got)}`,
  wrongRateSource:
    'a whole number >= 1, or a function of the context that returns one; a class is named in place of the limit',
  wrongRate: 'a whole number >= 1, or null if the limit does not apply',
  wrongKey: (resolver: string, got: unknown) =>
    `${resolver}.keyOf: got ${show(got)}, wants a string, a number, or nothing for requests without a key`,
  wrongResolver: 'a class that implements LimitResolver: it has a method resolve',
  early: "guard or authenticated where 'rate' is a function",
  notByRequest:
    "a whole number; a function of the context may be the 'rate' in the module's 'limits' and in @RateLimit",
} as const;
