import { show, wrongInput } from '../wording.js';

/** The messages of functions and classes that find limits per request. */
export const byRequestMessages = {
  /** `location` with the route of the request. */
  onRoute: (location: string, route: string) => `${location} for ${route}`,
  instance: (location: string, received: object) =>
    `${wrongInput(location, 'a limit', received)}; to use a class that finds limits, pass the class itself to the module's 'limits' or ` +
    '@RateLimit, and list it as a provider of a module',
  noAnswer: (location: string) =>
    `${location}: expected the function to return a limit, a name, several of these, or null for none, received undefined`,
  slow: (location: string, ms: number) =>
    `${location}: the function returned nothing within ${ms} ms. Make it faster, or increase the module's option 'resolveTimeout'`,
  failed: (location: string) => `${location}: the function failed, so the request fails`,
  lookUpFailed: (resolver: string, applies: 'last' | 'fallback' | 'nothing') =>
    `${resolver}.resolve failed, so ${
      {
        last: 'its last valid result applies to the key',
        fallback: "its 'fallback' applies to keys without a valid result",
        nothing: "requests of keys without a valid result fail; set 'fallback' to avoid that",
      }[applies]
    }`,
  noResolverOfApp: (received: unknown) =>
    wrongInput('LimiterService.forgetResolved', 'a class that finds limits of this app', received),
  wrongRateSource:
    'a whole number >= 1, or a function of the context that returns one; write a class in place of the limit',
  wrongRate: 'a whole number >= 1, or null if the limit does not apply',
  wrongKey: (resolver: string, received: unknown) =>
    wrongInput(`${resolver}.keyOf`, 'a string, a number, or nothing for requests without a key', received),
  wrongResolver: 'a class that implements LimitResolver: it has a method resolve',
  early: "guard or authenticated where 'rate' is a function",
  notByRequest:
    "a whole number; a function of the context may be the 'rate' in the module's 'limits' and in @RateLimit",
} as const;

/** The messages of hooks. */
export const hookMessages = {
  failed: (hook: string, limit: string | undefined) => `${nameOf(hook, limit)} failed; requests are not affected`,
  nested: (hook: string, limit: string | undefined) =>
    `${nameOf(hook, limit)} was left out of a decision that hooks caused`,
  causesItself: () => 'hooks call limits whose decisions call hooks again: leave out decisions of these limits',
} as const;

function nameOf(hook: string, limit: string | undefined): string {
  return `the hook '${hook}' of ${limit === undefined ? 'RateLimitModule' : `limit '${limit}'`}`;
}

/** The messages of `@Limited`. */
export const methodMessages = {
  noMethod: (location: string, received: unknown) =>
    wrongInput(location, 'a method of a class, which @Limited can replace', received),
  isStatic: (location: string) =>
    `${location}: a static method belongs to no app, so its limits can't be found. Move it to a provider, or call LimiterService`,
  onlyWaits: (location: string, option: string) =>
    `${location}: option '${option}' has no effect here. Set onLimit: 'wait', or remove it`,
  needsKey: (location: string, limit: string, key: unknown) =>
    `${location}: limit '${limit}' counts by ${show(key)}, which only requests have. Set the option 'key' to a function of the method's ` +
    'arguments',
  needsName: (location: string) =>
    `${location}: its class has no name that stays the same across builds. Give the limit a 'name'`,
  nowhere: (location: string) => `${location} needs RateLimitModule.forRoot() in the root module`,
  noApp: (location: string) =>
    `${location}: this instance belongs to no app, so its limits can't be found. Let Nest create it as a provider of an app that ` +
    'imports RateLimitModule',
  severalApps: (location: string) =>
    `${location}: this process has several apps, and Nest didn't create this instance, so its app is unknown. List the class in the ` +
    "'providers' of a module",
  tooEarly: (location: string) =>
    `${location}: the app isn't set up yet. Call the method in onModuleInit or later, not in a constructor`,
} as const;
