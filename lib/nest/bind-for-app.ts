import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';

type Module = ModulesContainer extends Map<string, infer M> ? M : never;

/** An enhancer that Nest binds by metadata: the key, and the kind of provider. */
export interface Enhancers {
  readonly key: string;
  readonly kind: 'guard' | 'filter';
}

/**
 * Binds one of our classes to a class of the app, before other enhancers, with the instance that serves this app. The apps of a process
 * share the metadata, which only contains the class; each app has its own instance in its module. In all apps but the first, Nest creates
 * that instance itself, possibly after this call. So the class must not have constructor parameters: Nest injects the parts of the app into
 * its properties. In an app without limits they stay empty, and the class does nothing.
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
