import type { Type } from '@nestjs/common';
import type { KeyFunction, KeyResolver } from '../../engine/limits/identity.js';
import { isClassWith } from '../../engine/options/callable-classes.js';
import type { KeyScheme } from './key-scheme.js';

/** Keys that the app computes have no name. */
const CUSTOM = { name: 'custom', noun: 'key' };

/** Counts per result of a function of the context. */
export const functionKey: KeyScheme<KeyFunction, KeyFunction> = {
  form: 'a function',
  parse: (key) => (typeof key === 'function' && !isResolverClass(key) ? (key as KeyFunction) : undefined),
  describe: () => CUSTOM,
  needsRoute: false,
  // The function receives only the context, not the parts of the request.
  resolve: (key) => (context) => key(context),
};

/** Counts per result of an injectable class. */
export const classKey: KeyScheme<Type<KeyResolver>, Type<KeyResolver>> = {
  form: 'a class that implements KeyResolver',
  parse: (key) => (typeof key === 'function' && isResolverClass(key) ? key : undefined),
  describe: () => CUSTOM,
  needsRoute: false,
  resolve(type, { classes, place }) {
    const resolve = classes.bind(type, place);
    return (context) => resolve(context);
  },
};

/** Returns true for a class that resolves keys, rather than a key function. */
export function isResolverClass(key: unknown): key is Type<KeyResolver> {
  return isClassWith('resolve', key);
}
