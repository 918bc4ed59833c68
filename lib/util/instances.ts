import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { provided } from './provided.js';

/** The instances of injectable classes that options name. */
export class Instances<T extends object> {
  private readonly instances = new Map<Type<T>, T | Promise<T> | undefined>();

  /** `refusalOf` makes the error for a class whose instances are not right. */
  constructor(
    private readonly modules: ModuleRef,
    private readonly isRight: (instance: T) => boolean,
    private readonly refusalOf: (type: Type<T>) => Error,
  ) {}

  /** Announces that an instance will be needed. */
  need(type: Type<T>): void {
    if (!this.instances.has(type)) this.instances.set(type, undefined);
  }

  /** Resolves when all classes needed so far have an instance. */
  async ready(): Promise<void> {
    for (const type of this.instances.keys()) await this.of(type);
  }

  /** The instance of a class, or, until there is one, a promise of it. */
  of(type: Type<T>): T | Promise<T> {
    const known = this.instances.get(type);
    if (known !== undefined) return known;
    const made = this.find(type).then((instance) => {
      this.instances.set(type, instance);
      return instance;
    });
    this.instances.set(type, made);
    return made;
  }

  private async find(type: Type<T>): Promise<T> {
    const instance = await provided(this.modules, type);
    if (this.isRight(instance)) return instance;
    throw this.refusalOf(type);
  }
}

/** Whether a function is a class with this method: it is on the prototype, or set on instances. Plain functions have neither. */
export function isClassWith(method: string, value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const prototype = ((value as { readonly prototype?: unknown }).prototype ?? {}) as Readonly<Record<string, unknown>>;
  return typeof prototype[method] === 'function' || /^class\b/.test(Function.prototype.toString.call(value));
}
