import { Injectable } from '@nestjs/common';
import { MetadataScanner, ModulesContainer } from '@nestjs/core';
import { namespaceOn } from './declared-metadata.js';
import { configError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { getOrMake } from '../../engine/util/objects.js';
import { haveGuards, nameOfClass, nameOfRoute } from './route-names.js';

/** A controller, or a provider whose methods are called like those of controllers (a resolver, a gateway). */
export type HandlerClass = abstract new (...args: never[]) => unknown;

/** A class that needs a namespace, or one of its methods. */
export interface Declarer {
  readonly type: HandlerClass;
  readonly method?: string;
}

/** Any characters that a structured field can contain, except a leading `@`, which is reserved for the module's limits. */
const NAMESPACE = /^(?!@)[\x20-\x7e]{1,128}$/;
/** The names that `mixin()` generates for classes, different at each start. */
const DRAWN = /^[0-9a-f]{21}$/;
/** Minifiers generate shorter names. */
const SHORTEST_WRITTEN = 4;
/** The metadata key under which `RouterModule` stores the path of a module, for one app and for all. */
const MODULE_PATH = '__module_path__';

/**
 * Determines the namespaces of limits that are declared on classes or methods. A namespace must be unique in the app and the same in all
 * instances, after every start and in every build. The name of a class isn't stable if `mixin()` or a minifier generated it, and isn't
 * unique if two modules have a class of that name.
 */
@Injectable()
export class Namespaces {
  private readonly namespaces = new Map<HandlerClass, Map<string | undefined, string>>();
  private readonly taken = new Set<string>();

  constructor(
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /** The namespace of a class or method. Throws `RateLimitConfigError` if nothing distinguishes it from others. */
  of({ type, method }: Declarer): string {
    const known = this.namespaces.get(type)?.get(method);
    if (known !== undefined) return known;
    this.assign([{ type, ...(method !== undefined && { method }) }]);
    return this.namespaces.get(type)!.get(method)!;
  }

  /**
   * Assigns each declarer its namespace: the first of its names that no other declarer has. All declarers that share a name move on to
   * their next one, so that their order does not matter.
   */
  assign(wanting: readonly Declarer[]): void {
    const locations = new Map<HandlerClass, string | undefined>();
    let open = wanting
      .filter(({ type, method }) => this.namespaces.get(type)?.has(method) !== true)
      .map((declarer) => ({ declarer, names: this.names(declarer, locations) }));
    while (open.length > 0) {
      const counts = new Map<string, number>();
      for (const { names } of open) if (names[0] !== undefined) counts.set(names[0], (counts.get(names[0]) ?? 0) + 1);
      const left: typeof open = [];
      const given: string[] = [];
      for (const { declarer, names } of open) {
        const [name, ...others] = names;
        if (name === undefined) throw configError('SLUICE_INVALID_NAMESPACE', this.nameless(declarer));
        if (counts.get(name) === 1 && !this.taken.has(name)) {
          getOrMake(this.namespaces, declarer.type, () => new Map()).set(declarer.method, name);
          given.push(name);
        } else if (explicit(declarer) !== undefined) {
          throw configError('SLUICE_INVALID_NAMESPACE', messages.namespaceTwice(locationOf(declarer), name));
        } else {
          left.push({ declarer, names: others });
        }
      }
      for (const name of [...given, ...counts.keys()]) this.taken.add(name);
      open = left;
    }
  }

  /** The message for limits without a namespace. It doesn't suggest one where nothing reads the limits. */
  private nameless(declarer: Declarer): string {
    const { type, method } = declarer;
    const methods = method === undefined ? this.scanner.getAllMethodNames(type.prototype as object) : [method];
    return (haveGuards(type, methods) ? messages.noNamespace : messages.notRead)(locationOf(declarer));
  }

  /** The names of a class or method, the most specific first. */
  private names(declarer: Declarer, locations: Map<HandlerClass, string | undefined>): string[] {
    const named = explicit(declarer);
    if (named !== undefined) return [named];
    const { type, method } = declarer;
    if (!locations.has(type)) locations.set(type, nameOfClass(type, this.prefixes(type)));
    const location = locations.get(type);
    const written = writtenName(type);
    if (method === undefined) {
      const first = location === undefined ? undefined : this.routes(type, location).sort()[0];
      return present([location, first === undefined ? undefined : `${location} ${first}`, written]);
    }
    const handler = (type.prototype as Record<string, object>)[method]!;
    // Method names are stable, unlike class names.
    const route =
      location === undefined ? undefined : (nameOfRoute(location, method, handler) ?? `${location} ${method}`);
    const ofClass = written === undefined ? undefined : `${written}.${method}`;
    return route === undefined ? present([ofClass]) : present([route, `${route} ${method}`, ofClass]);
  }

  private routes(type: HandlerClass, location: string): string[] {
    const prototype = type.prototype as Record<string, object>;
    const methods = this.scanner.getAllMethodNames(prototype);
    return present(methods.map((method) => nameOfRoute(location, method, prototype[method]!)));
  }

  /** The paths that modules prepend to that of a controller. */
  prefixes(type: HandlerClass): string[] {
    const paths = [...this.modules.values()]
      .filter(({ controllers }) => [...controllers.values()].some(({ metatype }) => metatype === type))
      .map(({ metatype }) => {
        const own: unknown = Reflect.getMetadata(MODULE_PATH + this.modules.applicationId, metatype);
        return own ?? (Reflect.getMetadata(MODULE_PATH, metatype) as unknown);
      });
    return [...new Set(paths.filter((path) => typeof path === 'string'))].sort();
  }
}

/** The name of a class in messages. */
export function classNameOf(type: HandlerClass): string {
  return type.name || 'a class without a name';
}

/** The name of a declarer in messages. */
export function locationOf({ type, method }: Declarer): string {
  return `@RateLimit on ${classNameOf(type)}${method === undefined ? '' : `.${method}`}`;
}

/** The namespace that the user has set, on the method itself or derived from that of its class. */
function explicit(declarer: Declarer): string | undefined {
  const { type, method } = declarer;
  const own = method === undefined ? undefined : namespaceOn((type.prototype as Record<string, object>)[method]!);
  const named = own ?? namespaceOn(type);
  if (named === undefined) return undefined;
  if (typeof named !== 'string' || !NAMESPACE.test(named)) {
    const location = locationOf(declarer).replace('@RateLimit', '@RateLimit.namespace');
    throw configError('SLUICE_INVALID_NAMESPACE', messages.wrongNamespace(location, named));
  }
  return own === undefined && method !== undefined ? `${named}.${method}` : named;
}

/** The name of a class, unless a build or a start may change it. */
export function writtenName({ name }: { readonly name: string }): string | undefined {
  return name.length >= SHORTEST_WRITTEN && !DRAWN.test(name) ? name : undefined;
}

function present(names: readonly (string | undefined)[]): string[] {
  return names.filter((name) => name !== undefined);
}
