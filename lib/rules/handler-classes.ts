import { Injectable } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { declaredOn, isLost, lineageOf } from './declared-metadata.js';
import { LimitRegistry } from './limit-registry.js';
import type { Declarer, HandlerClass } from './namespaces.js';
import { isHandler } from './route-names.js';

/** A method that is called for requests, messages or fields. */
export type Handler = object;

/** Finds the classes of an app whose methods are called from outside, and these methods. */
@Injectable()
export class HandlerClasses {
  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /** All controllers, and all providers that declare limits or, if each route counts on its own, have any. */
  all(): HandlerClass[] {
    const types = [...this.modules.values()].flatMap(({ controllers, providers }) => [
      ...[...controllers.values()].map(({ metatype }) => metatype).filter(isClass),
      ...[...providers.values()].map(({ metatype }) => metatype).filter((type) => isClass(type) && this.matters(type)),
    ]);
    return [...new Set(types as HandlerClass[])];
  }

  /** All controllers and providers that are classes, with or without limits. */
  known(): HandlerClass[] {
    return [...this.modules.values()].flatMap(({ controllers, providers }) =>
      [...controllers.values(), ...providers.values()].map(({ metatype }) => metatype).filter(isClass),
    );
  }

  /** The methods of a class by name. A wrapped method may have lost its own name. */
  handlers(type: HandlerClass): Map<string, Handler> {
    const prototype = type.prototype as Record<string, Handler>;
    const names = this.scanner.getAllMethodNames(prototype);
    return new Map(names.map((name) => [name, prototype[name] as Handler]));
  }

  /** Whether limits of the module, or of the class and its methods, may apply to any of its routes. */
  mayHaveLimits(type: HandlerClass): boolean {
    return this.registry.moduleRules.length > 0 || this.targets(type).some((each) => declaredOn(each).specs.length > 0);
  }

  /** The methods of a class that are decorated like routes. */
  routes(type: HandlerClass): Handler[] {
    return [...this.handlers(type).values()].filter(isRoute);
  }

  /** The classes and methods that may carry the decorators of a route. */
  targets(type: HandlerClass): object[] {
    return [...lineageOf(type), ...this.handlers(type).values()];
  }

  /** The class and the methods that need a namespace, which limits with the same name share. */
  declarers(type: HandlerClass): Declarer[] {
    const perRoute = this.countsPerRoute || lineageOf(type).some(declaresPerRoute);
    const methods = [...this.handlers(type)].filter(
      ([, handler]) => declaresUnnamed(handler) || (perRoute && isRoute(handler)),
    );
    const ofClass = lineageOf(type).some(declaresUnnamed) ? [{ type }] : [];
    return [...ofClass, ...methods.map(([method]) => ({ type, method }))];
  }

  /** The routes whose limits are declared on functions that no request calls any more. */
  lostMethods(type: HandlerClass): string[] {
    const routes = [...this.handlers(type)].filter(([, handler]) => isRoute(handler));
    return routes.map(([method]) => method).filter((method) => isLost(type.prototype as object, method));
  }

  private get countsPerRoute(): boolean {
    return this.registry.moduleRules.some(({ perRoute }) => perRoute);
  }

  private matters(type: HandlerClass): boolean {
    if (this.targets(type).some(declares) || this.lostMethods(type).length > 0) return true;
    return this.countsPerRoute && [...this.handlers(type).values()].some(isHandler);
  }
}

/** Whether a class or method itself declares limits or skips. */
export function declares(target: object): boolean {
  const { specs, skips } = declaredOn(target);
  return specs.length > 0 || skips.length > 0;
}

/** Whether a method is decorated by others than us, as every route is. */
export function isRoute(handler: Handler): boolean {
  return Reflect.getMetadataKeys(handler).length > 0;
}

/** Whether it declares limits whose counters are not identified by a name. */
function declaresUnnamed(target: object): boolean {
  return declaredOn(target).specs.some((spec) => typeof spec !== 'string');
}

/** Whether each route of a class has its own counter for a limit of that class. */
function declaresPerRoute(type: object): boolean {
  return declaredOn(type).specs.some((spec) => typeof spec === 'object' && spec?.perRoute === true);
}

function isClass(type: object | null): type is HandlerClass {
  return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null;
}
