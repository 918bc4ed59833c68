import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { isClass } from './is-class.js';
import { provided } from './provided.js';

/** Where an option is given, for messages. */
export interface OptionPlace {
  readonly location: string;
  readonly option: string;
}

/** The instances of injectable classes that options name. */
export class Instances<T extends object> {
  private readonly instances = new Map<Type<T>, T | Promise<T> | undefined>();
  /** Where each class is named first. */
  private readonly places = new Map<Type<T>, OptionPlace>();

  /** `refusalOf` makes the error for a class without the method. */
  constructor(
    private readonly modules: ModuleRef,
    private readonly method: keyof T,
    private readonly refusalOf: (type: Type<T>, place: OptionPlace) => Error,
  ) {}

  /** Announces that an instance will be needed for an option. */
  need(type: Type<T>, place: OptionPlace): void {
    if (this.instances.has(type)) return;
    this.instances.set(type, undefined);
    this.places.set(type, place);
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
    if (typeof instance[this.method] === 'function') return instance;
    throw this.refusalOf(type, this.places.get(type)!);
  }
}

/** Whether a function is a class with this method: it is on the prototype, or set on instances. Plain functions have neither. */
export function isClassWith(method: string, value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const prototype = ((value as { readonly prototype?: unknown }).prototype ?? {}) as Readonly<Record<string, unknown>>;
  return typeof prototype[method] === 'function' || isClass(value);
}
