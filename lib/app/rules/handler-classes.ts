import { Injectable } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { DeclaredClass, type Handler } from './declared-class.js';
import { LimitRegistry } from './limit-registry.js';
import type { HandlerClass } from './namespaces.js';
import { isHandler } from './route-names.js';

export type { Handler } from './declared-class.js';

/** Finds the classes whose methods handle requests, messages or fields, and these methods. */
@Injectable()
export class HandlerClasses {
  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /** All controllers, and all providers that declare limits. If each route has its own counter, also all other providers with limits. */
  all(): HandlerClass[] {
    return this.declared().map(({ type }) => type);
  }

  /** The same classes with their current declarations. */
  declared(): DeclaredClass[] {
    const found = new Map<HandlerClass, DeclaredClass>();
    const passed = new Set<HandlerClass>();
    for (const { controllers, providers } of this.modules.values()) {
      for (const { metatype: type } of controllers.values()) {
        if (isClass(type) && !found.has(type)) found.set(type, this.read(type));
      }
      for (const { metatype: type } of providers.values()) {
        if (!isClass(type) || found.has(type) || passed.has(type)) continue;
        const read = this.read(type);
        if (this.matters(read)) found.set(type, read);
        else passed.add(type);
      }
    }
    return [...found.values()];
  }

  /** All controllers and all providers with a class, with or without limits. */
  known(): HandlerClass[] {
    return [...this.modules.values()].flatMap(({ controllers, providers }) =>
      [...controllers.values(), ...providers.values()].map(({ metatype }) => metatype).filter(isClass),
    );
  }

  /** The methods of a class by name. A wrapped method may have lost its own name. */
  handlers(type: HandlerClass): Map<string, Handler> {
    const prototype = type.prototype as Record<string, Handler>;
    return new Map(this.namesOf(type).map((name) => [name, prototype[name] as Handler]));
  }

  /** The name of a method in its class. */
  nameOf(type: HandlerClass, handler: Handler): string | undefined {
    const prototype = type.prototype as Record<string, Handler>;
    return this.namesOf(type).find((name) => prototype[name] === handler);
  }

  /** Returns true if limits of the module, or of the class and its methods, may apply to any of its routes. */
  mayHaveLimits(type: HandlerClass): boolean {
    return this.registry.moduleSpecs.length > 0 || this.read(type).hasLimits;
  }

  /** The methods of a class that are decorated like routes. */
  routes(type: HandlerClass): Handler[] {
    return this.read(type).routes.map(({ handler }) => handler);
  }

  /** True if a limit of the module has a counter per route. */
  get countsPerRoute(): boolean {
    return this.registry.countsPerRoute;
  }

  private read(type: HandlerClass): DeclaredClass {
    return new DeclaredClass(type, this.namesOf(type));
  }

  private namesOf(type: HandlerClass): readonly string[] {
    return this.scanner.getAllMethodNames(type.prototype as object);
  }

  private matters(provider: DeclaredClass): boolean {
    return provider.declares || (this.countsPerRoute && provider.methods.some(({ handler }) => isHandler(handler)));
  }
}

function isClass(type: object | null): type is HandlerClass {
  return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null;
}
