import { Injectable } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import type { LimitSpec } from '../config/limits-by-request.js';
import { type Declared, declaredOn, isLost, lineageOf } from './declared-metadata.js';
import { LimitRegistry } from './limit-registry.js';
import { type Declarer, type HandlerClass, locationOf } from './namespaces.js';
import { haveGuards, isHandler, METHOD } from './route-names.js';

/** A method that is called for requests, messages or fields. */
export type Handler = object;

/** A method of a class, and its declarations. */
export interface DeclaredMethod {
  readonly name: string;
  readonly handler: Handler;
  readonly declared: Declared;
}

/** A limit, the name of one or a function, together with the place of its declaration for messages. */
export interface PlacedSpec {
  readonly spec: LimitSpec;
  readonly location: string;
}

/** A class with its methods at one step of the start-up. Its declarations are read once. */
export class DeclaredClass {
  readonly methods: readonly DeclaredMethod[];
  /** The declarations of the class and its superclasses, starting with the most basic one. */
  private readonly ofClass: readonly Declared[];
  private knownRoutes: readonly DeclaredMethod[] | undefined;

  constructor(
    readonly type: HandlerClass,
    names: readonly string[],
  ) {
    const prototype = type.prototype as Record<string, Handler>;
    this.ofClass = lineageOf(type).map(declaredOn);
    this.methods = names.map((name) => {
      const handler = prototype[name]!;
      return { name, handler, declared: declaredOn(handler) };
    });
  }

  /** The methods that are decorated like routes. */
  get routes(): readonly DeclaredMethod[] {
    return (this.knownRoutes ??= this.methods.filter(({ handler }) => isRoute(handler)));
  }

  /** True if the class itself or a superclass declares limits. */
  get hasLimitsOfClass(): boolean {
    return this.ofClass.some(hasLimits);
  }

  /** True if the class or any of its methods declares limits. */
  get hasLimits(): boolean {
    return this.hasLimitsOfClass || this.methods.some(({ declared }) => hasLimits(declared));
  }

  /** True if the class or its methods have, or had and lost, any declaration. */
  get declares(): boolean {
    return this.declaresOfClass || this.methods.some(({ declared }) => isDeclaration(declared)) || this.lost.length > 0;
  }

  /** All limits, names of limits and functions that are declared on the class and its methods. */
  get specs(): PlacedSpec[] {
    const { type } = this;
    const ofClass = lineageOf(type).flatMap((each) => placed(declaredOn(each), { type: each as HandlerClass }));
    return [...ofClass, ...this.methods.flatMap(({ name, declared }) => placed(declared, { type, method: name }))];
  }

  /** The routes that a declaration on them or on the class applies to. */
  get declaredRoutes(): readonly DeclaredMethod[] {
    return this.declaresOfClass ? this.routes : this.routes.filter(({ declared }) => isDeclaration(declared));
  }

  /** The routes whose limits are lost, because they are declared on functions that no request calls any more. */
  get lost(): readonly string[] {
    const prototype = this.type.prototype as object;
    return this.routes.map(({ name }) => name).filter((name) => isLost(prototype, name));
  }

  /** The places of limits that are never checked, because Nest calls no guard before these methods. */
  get unread(): readonly string[] {
    const { type, methods } = this;
    const names = methods.map(({ name }) => name);
    if (hasLimits(declaredOn(type)) && !haveGuards(type, names)) return [locationOf({ type })];
    return methods
      .filter(({ name, declared }) => hasLimits(declared) && !haveGuards(type, [name]))
      .map(({ name }) => locationOf({ type, method: name }));
  }

  /** The class and the methods that need a namespace, which limits with the same name share. With `perRoute`, all routes need one. */
  declarers(perRoute: boolean): Declarer[] {
    const { type } = this;
    const each = perRoute || this.ofClass.some(declaresPerRoute);
    const methods = this.methods.filter(
      ({ handler, declared }) => declaresUnnamed(declared) || (each && isRoute(handler)),
    );
    const ofClass = this.ofClass.some(declaresUnnamed) ? [{ type }] : [];
    return [...ofClass, ...methods.map(({ name }) => ({ type, method: name }))];
  }

  private get declaresOfClass(): boolean {
    return this.ofClass.some(isDeclaration);
  }
}

/** Returns true if another package decorated the method, which is the case for every route. */
export function isRoute(handler: Handler): boolean {
  return Reflect.hasMetadata(METHOD, handler) || Reflect.getMetadataKeys(handler).length > 0;
}

/** Returns true if limits or skips are declared. */
export function isDeclaration({ specs, skips }: Declared): boolean {
  return specs.length > 0 || skips.length > 0;
}

function placed({ specs }: Declared, declarer: Declarer): PlacedSpec[] {
  if (specs.length === 0) return [];
  const location = locationOf(declarer);
  return specs.map((spec) => ({ spec, location }));
}

function hasLimits({ specs }: Declared): boolean {
  return specs.length > 0;
}

/** Returns true if a limit is declared whose counters no name identifies. */
function declaresUnnamed({ specs }: Declared): boolean {
  return specs.some((spec) => typeof spec !== 'string');
}

/** Returns true if each route of a class has its own counter for a limit of the class. */
function declaresPerRoute({ specs }: Declared): boolean {
  return specs.some((spec) => typeof spec === 'object' && spec?.perRoute === true);
}

/** Finds the classes whose methods handle requests, messages or fields, and these methods. */
@Injectable()
export class HandlerClasses {
  constructor(
    private readonly registry: LimitRegistry,
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /**
   * All controllers, and all providers that declare limits, with their current declarations. If each route has its own counter, also all
   * other providers with handlers.
   */
  declared(): DeclaredClass[] {
    const found = new Map<HandlerClass, DeclaredClass>();
    const passed = new Set<HandlerClass>();
    const { countsPerRoute } = this.registry;
    const matters = ({ declares, methods }: DeclaredClass) =>
      declares || (countsPerRoute && methods.some(({ handler }) => isHandler(handler)));
    for (const { controllers, providers } of this.modules.values()) {
      for (const { metatype: type } of controllers.values()) {
        if (isClass(type) && !found.has(type)) found.set(type, this.read(type));
      }
      for (const { metatype: type } of providers.values()) {
        if (!isClass(type) || found.has(type) || passed.has(type)) continue;
        const read = this.read(type);
        if (matters(read)) found.set(type, read);
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

  private read(type: HandlerClass): DeclaredClass {
    return new DeclaredClass(type, this.namesOf(type));
  }

  private namesOf(type: HandlerClass): readonly string[] {
    return this.scanner.getAllMethodNames(type.prototype as object);
  }
}

function isClass(type: object | null): type is HandlerClass {
  return typeof type === 'function' && typeof type.prototype === 'object' && type.prototype !== null;
}
