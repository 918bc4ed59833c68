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
 * process share the metadata, which names the class alone; its instance is in each app's own module. In all apps
 * but the first, Nest makes an instance by itself, perhaps after this. So the class needs no arguments: Nest injects what belongs to the app
 * into its properties, and in an app without limits, where there is nothing to inject, it does nothing.
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
