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
