import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';

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

/** Checks an instance of a class and creates the object that its users call. `place` is the first place where the class is used. */
type Make<T, Place, Made> = (instance: T, type: Type<T>, place: Place) => Made;

/** The instances of injectable classes in options, or the objects created from them, one per class. */
export class Instances<T extends object, Place, Made extends object = T> {
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
