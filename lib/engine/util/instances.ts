import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { isClass } from './objects.js';

/** Returns the app's instance of an injectable class, or a new one if no module provides it. */
export async function provided<T>(modules: ModuleRef, type: Type<T>): Promise<T> {
  let own: T | undefined;
  try {
    own = modules.get(type, { strict: false });
  } catch {
    own = undefined;
  }
  return own ?? (await modules.create(type));
}

/** The place of an option, for messages. */
export interface OptionPlace {
  readonly location: string;
  readonly option: string;
}

/** Checks an instance of a class and creates the object that its users call. `place` is the first place where the class is used. */
type Make<T, Place, Made> = (instance: T, type: Type<T>, place: Place) => Made;

/** The instances of injectable classes in options, or the objects created from them, one per class. */
export class Instances<T extends object, Place = OptionPlace, Made extends object = T> {
  private readonly instances = new Map<Type<T>, Made | Promise<Made> | undefined>();
  private readonly places = new Map<Type<T>, Place>();

  constructor(
    private readonly modules: ModuleRef,
    private readonly make: Make<T, Place, Made>,
  ) {}

  /** Registers that an option will need an instance. */
  need(type: Type<T>, place: Place): void {
    if (this.instances.has(type)) return;
    this.instances.set(type, undefined);
    this.places.set(type, place);
  }

  /** Resolves when all classes needed so far have an instance. */
  async ready(): Promise<void> {
    for (const type of this.instances.keys()) await this.of(type);
  }

  /** The object created from the instance of a class, or a promise of it while there is none. */
  of(type: Type<T>): Made | Promise<Made> {
    const known = this.instances.get(type);
    if (known !== undefined) return known;
    const making = provided(this.modules, type).then((instance) => {
      const made = this.make(instance, type, this.places.get(type)!);
      this.instances.set(type, made);
      return made;
    });
    this.instances.set(type, making);
    return making;
  }

  /** The object created from the instance of a class; `undefined` if no option uses the class, or there isn't an instance yet. */
  made(type: Type<T>): Made | undefined {
    const known = this.instances.get(type);
    return known instanceof Promise ? undefined : known;
  }
}

/** An injectable class whose instances have a method. */
type ClassWith<Method extends string, Call> = Type<Record<Method, Call>>;

/** The instances of classes with one method, which options accept in place of a function. */
export class CallableClasses<Method extends string, Call extends (...asked: never[]) => unknown> extends Instances<
  Record<Method, Call>
> {
  /** `expected`: the values of these options, for messages. */
  constructor(
    modules: ModuleRef,
    private readonly method: Method,
    expected: string,
  ) {
    super(modules, (instance, type, { location, option }) => {
      if (typeof instance[method] === 'function') return instance;
      throw new RateLimitConfigError(messages.lacksMethod(location, option, type, method, expected));
    });
  }

  /** Turns the value of an option into a function. */
  bind(given: Call | ClassWith<Method, Call>, place: OptionPlace): Call {
    const { method } = this;
    if (!isClassWith(method, given)) return given as Call;
    const type = given as ClassWith<Method, Call>;
    this.need(type, place);
    const call = (...asked: Parameters<Call>): unknown => {
      const instance = this.of(type);
      return instance instanceof Promise ? instance.then((made) => made[method](...asked)) : instance[method](...asked);
    };
    return call as Call;
  }
}

/** Returns true if a function is a class with this method. It may be on the prototype or set on instances; plain functions have neither. */
export function isClassWith(method: string, value: unknown): boolean {
  if (typeof value !== 'function') return false;
  const prototype = ((value as { readonly prototype?: unknown }).prototype ?? {}) as Readonly<Record<string, unknown>>;
  return typeof prototype[method] === 'function' || isClass(value);
}
