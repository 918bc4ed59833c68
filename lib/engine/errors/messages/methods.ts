import { show, wrongInput } from '../wording.js';

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
