import type { Type } from '@nestjs/common';
import type { KeyFunction, KeyResolver } from './key-resolver.js';
import type { KeyScheme } from './key-scheme.js';

/** What is not the package's own has no name of its own. */
const CUSTOM = { name: 'custom', noun: 'key' };

/** Counts by what a function of the context gives. */
export const functionKey: KeyScheme<KeyFunction, KeyFunction> = {
  form: 'a function',
  parse: (key) => (typeof key === 'function' && !isResolverClass(key) ? (key as KeyFunction) : undefined),
  describe: () => CUSTOM,
  needsRoute: true,
  resolve: (key) => (context) => key(context),
};

/** Counts by what an injectable class gives. */
export const classKey: KeyScheme<Type<KeyResolver>, Type<KeyResolver>> = {
  form: 'a class that implements KeyResolver',
  parse: (key) => (typeof key === 'function' && isResolverClass(key) ? key : undefined),
  describe: () => CUSTOM,
  needsRoute: true,
  resolve(type, { instances }) {
    instances.need(type);
    return (context) => {
      const instance = instances.of(type);
      return instance instanceof Promise
        ? instance.then((resolver) => resolver.resolve(context))
        : instance.resolve(context);
    };
  },
};

/** A class has its `resolve` on the prototype, or in an instance; a function has neither. */
function isResolverClass(key: { readonly prototype?: unknown }): key is Type<KeyResolver> {
  const { resolve } = (key.prototype ?? {}) as Partial<KeyResolver>;
  return typeof resolve === 'function' || /^class\b/.test(Function.prototype.toString.call(key));
}
