import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';

/** The app's own instance of an injectable class, or one of ours if no module provides it. */
export async function provided<T>(modules: ModuleRef, type: Type<T>): Promise<T> {
  let own: T | undefined;
  try {
    own = modules.get(type, { strict: false });
  } catch {
    own = undefined;
  }
  return own ?? (await modules.create(type));
}
