import 'reflect-metadata';
import type { LimitSpec } from '../config/limits-by-request.js';

/** The declarations of a class or a method. */
export interface Declared {
  readonly specs: readonly LimitSpec[];
  readonly skips: 'all' | readonly string[];
  /** Why limits are skipped, if that was given. */
  readonly because?: string | undefined;
}

const DECLARED = 'nestjs-sluice:declared';
/** The metadata key under which a prototype stores the original functions of its methods, as they were at their first declaration. */
const DECLARING = 'nestjs-sluice:declaring';
const NAMESPACE = 'nestjs-sluice:namespace';
const NOTHING: Declared = { specs: [], skips: [] };

type FirstDeclaring = Map<string | symbol, object>;

/** The declarations on a method, or on a class itself. */
export function declaredOn(target: object): Declared {
  return (Reflect.getOwnMetadata(DECLARED, target) as Declared | undefined) ?? NOTHING;
}

/** A class and its superclasses, starting with the most basic one: their declarations add up. */
export function lineageOf(type: object): object[] {
  const lineage: object[] = [];
  for (let each: object | null = type; each !== null && each !== Function.prototype;) {
    lineage.unshift(each);
    each = Object.getPrototypeOf(each) as object | null;
  }
  return lineage;
}

/** A decorator that adds to earlier declarations of the same class or method. Decorators run from the last to the first. */
export function declare(add: (declared: Declared) => Declared): ClassDecorator & MethodDecorator {
  return (target: object, key?: string | symbol, descriptor?: PropertyDescriptor) => {
    const host = hostOf(target, descriptor);
    Reflect.defineMetadata(DECLARED, add(declaredOn(host)), host);
    if (key === undefined || host === target) return;
    let first = Reflect.getOwnMetadata(DECLARING, target) as FirstDeclaring | undefined;
    if (first === undefined) Reflect.defineMetadata(DECLARING, (first = new Map()), target);
    if (!first.has(key)) first.set(key, host);
  };
}

/** Returns true if a method's declarations are lost because a decorator above replaced it with a function that lacks the metadata. */
export function isLost(prototype: object, method: string): boolean {
  let owner: object | null = prototype;
  while (owner !== null && !Object.hasOwn(owner, method)) owner = Object.getPrototypeOf(owner) as object | null;
  if (owner === null) return false;
  const first = (Reflect.getOwnMetadata(DECLARING, owner) as FirstDeclaring | undefined)?.get(method);
  if (first === undefined) return false;
  const current = (owner as Record<string, object>)[method]!;
  if (first === current) return false;
  const before = declaredOn(first);
  const { specs, skips } = declaredOn(current);
  const keepsSkips = skips === 'all' || (before.skips !== 'all' && before.skips.every((name) => skips.includes(name)));
  return !keepsSkips || !before.specs.every((spec) => specs.includes(spec));
}

/** A decorator that sets the namespace of the counters of a class or method. */
export function declareNamespace(namespace: string): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor) =>
    Reflect.defineMetadata(NAMESPACE, namespace, hostOf(target, descriptor));
}

/** The namespace of a class, which may inherit it, or of a method, if set. */
export function namespaceOn(target: object): unknown {
  return Reflect.getMetadata(NAMESPACE, target);
}

function hostOf(target: object, descriptor: PropertyDescriptor | undefined): object {
  return (descriptor?.value as object | undefined) ?? target;
}
