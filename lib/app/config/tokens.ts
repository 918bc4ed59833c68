import 'reflect-metadata';

/** The token of the module's settings. */
export const RATE_LIMIT_SETTINGS = Symbol('RATE_LIMIT_SETTINGS');
/** The token of the connection that the store and the overrides share; `undefined` without `redis`. */
export const RATE_LIMIT_REDIS = Symbol('RATE_LIMIT_REDIS');
/** The token of the connection to the home Redis, which counts for several regions; `undefined` without `regions`. */
export const RATE_LIMIT_HOME = Symbol('RATE_LIMIT_HOME');
/** The token of the store. */
export const RATE_LIMIT_STORE = Symbol('RATE_LIMIT_STORE');

/** The token of the function that returns random numbers >= 0 and < 1. */
export const RATE_LIMIT_RANDOM = Symbol('RATE_LIMIT_RANDOM');
/** The token of the option `guard`. */
export const RATE_LIMIT_GUARD_OPTION = Symbol('RATE_LIMIT_GUARD_OPTION');
/** The token of the current lists. */
export const RATE_LIMIT_LISTS = Symbol('RATE_LIMIT_LISTS');
/** The token of the store of overrides. */
export const OVERRIDE_STORE = Symbol('OVERRIDE_STORE');
/** The token of the first version of the policy; `undefined` without one. */
export const RATE_LIMIT_POLICY = Symbol('RATE_LIMIT_POLICY');
/** The token of `Policies`, which apply each version of the policy; `undefined` without one. */
export const RATE_LIMIT_POLICIES = Symbol('RATE_LIMIT_POLICIES');
/** The token of the option `policy` after reading and checking; `undefined` without it. */
export const POLICY_SETTINGS = Symbol('POLICY_SETTINGS');

const INJECTED = 'nestjs-sluice:injected';
/** Nest shows the token in its error if no module provides it. */
const PREFIX = 'the Limiter of RateLimitModule.forRoot(), to import in the root module, named ';

/** The names of all tokens created so far. They are kept per process, which may run several apps. */
const recorded = new Set<string>();
const listeners: ((name: string) => void)[] = [];

/** The injection token of a defined limit's `Limiter`: for `inject` of a factory, for `app.get`, and to override it in tests. */
export function getLimiterToken(name: string): string {
  if (!recorded.has(name)) {
    recorded.add(name);
    for (const listener of listeners) listener(name);
  }
  return `${PREFIX}${name}`;
}

/** Calls the listener with every name, including those recorded before. */
export function onLimiterRecorded(listener: (name: string) => void): void {
  listeners.push(listener);
  for (const name of recorded) listener(name);
}

/** The names of the limiters that a provider injects: through decorators of its class, or through `inject` of its factory. */
export function limitersOf(type: object | null | undefined, inject: readonly unknown[] | null | undefined): string[] {
  const decorated = typeof type === 'function' ? (Reflect.getMetadata(INJECTED, type) as string[] | undefined) : [];
  const tokens = (inject ?? []).map((each) =>
    typeof each === 'object' && each !== null && 'token' in each ? each.token : each,
  );
  const injected = tokens.filter((token) => typeof token === 'string' && token.startsWith(PREFIX)) as string[];
  return [...(decorated ?? []), ...injected.map((token) => token.slice(PREFIX.length))];
}

/** Records that a class injects the limiter of this name. */
export function recordInjection(host: object, name: string): void {
  const names = (Reflect.getMetadata(INJECTED, host) as string[] | undefined) ?? [];
  Reflect.defineMetadata(INJECTED, [...names, name], host);
}
