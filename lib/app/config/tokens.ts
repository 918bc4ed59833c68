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
/** The token of what applies versions of the policy; `undefined` without one. */
export const RATE_LIMIT_POLICIES = Symbol('RATE_LIMIT_POLICIES');
/** The token of the option `policy` after reading and checking; `undefined` without it. */
export const POLICY_SETTINGS = Symbol('POLICY_SETTINGS');
