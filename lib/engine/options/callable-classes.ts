import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { Instances } from '../util/instances.js';
import { isClass } from '../util/objects.js';

/** The place of an option, for messages. */
export interface OptionPlace {
  readonly location: string;
  readonly option: string;
}

/** An injectable class whose instances have a method. */
type ClassWith<Method extends string, Call> = Type<Record<Method, Call>>;

/** The instances of classes with one method, which options accept in place of a function. */
export class CallableClasses<Method extends string, Call extends (...asked: never[]) => unknown> extends Instances<
  Record<Method, Call>,
  OptionPlace
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
