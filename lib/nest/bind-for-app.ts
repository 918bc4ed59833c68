import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;

/** What Nest binds by metadata: the key, and the kind of provider. */
export interface Enhancers {
  readonly key: string;
  readonly kind: 'guard' | 'filter';
}

/**
 * Binds a class of ours to a class of the app before what else is bound to it, with the instance that serves this app. Apps of a
 * process share the metadata, which names the class alone; its instance is in each app's own module. Nest makes an instance by itself in
 * an app without this one, and in the next one that has it, where it may do so later than here. So it can be made without arguments, gets
 * what is the app's by properties, and does nothing without that.
 */
export function bindForApp<T extends object>(
  { key, kind }: Enhancers,
  target: { readonly type: object; readonly module: Module },
  bound: { readonly type: Type<T>; readonly instance: T },
): void {
  const others = (Reflect.getMetadata(key, target.type) as readonly object[] | undefined) ?? [];
  if (!others.includes(bound.type)) Reflect.defineMetadata(key, [bound.type, ...others], target.type);
  target.module.addInjectable({ provide: bound.type, useValue: bound.instance }, kind);
}
