import 'reflect-metadata';
import type { LimitSpec } from '../limit-definition.js';
import { record } from '../plan/outlasting.js';

/** What a class or a method declares. */
export interface Declared {
  readonly specs: readonly LimitSpec[];
  readonly skips: 'all' | readonly string[];
}

const DECLARED = 'nestjs-sluice:declared';
const NOTHING: Declared = { specs: [], skips: [] };

/** What is declared on a class, which may inherit it, or on a method. */
export function declaredOn(target: object): Declared {
  return (Reflect.getMetadata(DECLARED, target) as Declared | undefined) ?? NOTHING;
}

/** A decorator that adds to what other decorators of the same class or method declared. Decorators run from the last to the first. */
export function declare(add: (declared: Declared) => Declared): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor) => {
    const host = (descriptor?.value as object | undefined) ?? target;
    const declared = (Reflect.getOwnMetadata(DECLARED, host) as Declared | undefined) ?? NOTHING;
    const all = add(declared);
    record(all.specs);
    Reflect.defineMetadata(DECLARED, all, host);
  };
}
