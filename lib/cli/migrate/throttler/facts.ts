import type TS from 'typescript';
import type { Project } from '../project.js';
import type { Source } from '../source.js';
import { constantOf, durationOf } from '../values.js';
import { type Guard, guardsOf } from './guards.js';

export const THROTTLER = /^@nestjs\/throttler(?:\/.*)?$/;
export const STORAGES =
  /^(?:@nest-lab\/throttler-storage-redis|nestjs-throttler-storage-redis|@kirklin\/.*throttler.*)$/;
export const THROTTLER_TEXT = /@nestjs\/throttler|throttler-storage-redis/;

export interface Place {
  readonly source: Source;
  readonly node: TS.Expression;
}

/** The known properties of a throttler of the module. Only constants are known. */
interface KnownThrottler {
  readonly limit: string | undefined;
  readonly ttl: string | undefined;
}

/** The use of `@nestjs/throttler` in a project, read before any changes. */
export class ThrottlerFacts {
  /** The throttlers of the module by name; `undefined` if some are only known at run time. */
  readonly throttlers: ReadonlyMap<string, KnownThrottler> | undefined;
  readonly algo: 'sliding-log' | 'fixed-window';
  readonly guards: ReadonlyMap<string, Guard>;
  readonly hasGraphql: boolean;
  /** The places where the module is set up. */
  readonly calls: readonly { source: Source; call: TS.CallExpression; method: string }[];
  readonly sources: readonly Source[];

  constructor(readonly project: Project) {
    const direct = project.matching(THROTTLER_TEXT);
    this.guards = guardsOf(project, direct);
    const names = [...this.guards.keys()];
    const byName = names.length === 0 ? [] : project.matching(new RegExp(String.raw`\b(?:${names.join('|')})\b`));
    this.sources = [...new Set([...direct, ...byName])];
    this.hasGraphql = project.matching(/@nestjs\/graphql/).length > 0;
    this.calls = this.sources.flatMap((source) => moduleCalls(source));
    const counted = this.calls.filter(({ source }) => !isTest(source));
    this.throttlers = this.readThrottlers(counted.length > 0 ? counted : this.calls);
    this.algo = this.sources.some(({ imported }) => [...imported.values()].some(({ module }) => STORAGES.test(module)))
      ? 'fixed-window'
      : 'sliding-log';
  }

  /** The milliseconds of a unit of `ttl`. Up to version 5, it was in seconds. */
  unitOf(source: Source): number {
    return (this.majorOf(source) ?? 6) < 5 ? 1000 : 1;
  }

  /** Returns true if a rejected client is blocked for `ttl`, as since version 6. */
  blocks(source: Source): boolean {
    return (this.majorOf(source) ?? 6) >= 6;
  }

  private majorOf(source: Source): number | undefined {
    return this.project.majorOf('@nestjs/throttler', source.path);
  }

  /** The literals that an expression may evaluate to, with `undefined` for values that are only known at run time. */
  resolve(source: Source, expression: TS.Node | undefined, depth = 0): (Place | undefined)[] {
    const { ts } = source;
    if (expression === undefined || depth > 5) return [undefined];
    if (ts.isFunctionLike(expression)) {
      return source.returned(expression).flatMap((node) => this.resolve(source, node, depth + 1));
    }
    const node = source.bare(expression as TS.Expression);
    if (ts.isArrayLiteralExpression(node) || ts.isObjectLiteralExpression(node)) return [{ source, node }];
    if (ts.isAwaitExpression(node)) return this.resolve(source, node.expression, depth + 1);
    if (ts.isConditionalExpression(node)) {
      return [node.whenTrue, node.whenFalse].flatMap((branch) => this.resolve(source, branch, depth + 1));
    }
    const name = ts.isCallExpression(node) ? node.expression : node;
    if (ts.isIdentifier(name)) {
      const declared = this.project.declaration(source, name.text);
      if (declared?.node !== undefined) return this.resolve(declared.source, declared.node, depth + 1);
    }
    if (ts.isPropertyAccessExpression(node)) {
      return this.resolve(source, node.expression, depth + 1).map((place) => {
        if (place === undefined || !ts.isObjectLiteralExpression(place.node)) return undefined;
        const value = place.source.valueOf(place.source.property(place.node, node.name.text));
        return value && this.resolve(place.source, value, depth + 1)[0];
      });
    }
    return [undefined];
  }

  /** The expressions with the options of the module. */
  optionsOf({ source, call, method }: (typeof this.calls)[number]): (TS.Node | undefined)[] {
    const { ts } = source;
    const argument = call.arguments[0];
    if (method === 'forRoot') return argument === undefined ? [] : [argument];
    if (argument === undefined || !ts.isObjectLiteralExpression(argument)) return [undefined];
    const factory = source.property(argument, 'useFactory');
    if (factory !== undefined && ts.isMethodDeclaration(factory)) return [factory];
    if (factory !== undefined) return [source.valueOf(factory)];
    const by = source.valueOf(source.property(argument, 'useClass') ?? source.property(argument, 'useExisting'));
    const owner = by === undefined ? undefined : this.factoryMethod(source.before(by));
    return [owner];
  }

  private factoryMethod(name: string): TS.Node | undefined {
    for (const source of this.sources) {
      for (const node of source.ast.statements) {
        if (!source.ts.isClassDeclaration(node) || node.name?.text !== name) continue;
        return source.method(node, 'createThrottlerOptions');
      }
    }
    return undefined;
  }

  private readThrottlers(calls: typeof this.calls): ReadonlyMap<string, KnownThrottler> | undefined {
    if (calls.length === 0) return undefined;
    const found = new Map<string, KnownThrottler>();
    for (const call of calls) {
      for (const options of this.optionsOf(call)) {
        const owner = options === undefined ? undefined : this.sourceOf(options);
        for (const place of this.resolve(owner ?? call.source, options)) {
          if (place === undefined || !this.addThrottlers(place, found)) return undefined;
        }
      }
    }
    return found;
  }

  private sourceOf(node: TS.Node): Source | undefined {
    const file = node.getSourceFile();
    return this.project.sourcesRead.find(({ ast }) => ast === file);
  }

  private addThrottlers({ source, node }: Place, found: Map<string, KnownThrottler>): boolean {
    const { ts } = source;
    const isAdded = (at: Place | undefined) => at !== undefined && this.addThrottlers(at, found);
    if (ts.isArrayLiteralExpression(node)) {
      return node.elements.every((element) => {
        if (ts.isSpreadElement(element)) return this.resolve(source, element.expression).every(isAdded);
        return this.resolve(source, element).every((at) => at !== undefined && this.addThrottler(at, found));
      });
    }
    if (!ts.isObjectLiteralExpression(node)) return false;
    const list = source.valueOf(source.property(node, 'throttlers'));
    // The form up to version 4.
    if (list === undefined) return this.addThrottler({ source, node }, found);
    return this.resolve(source, list).every(isAdded);
  }

  private addThrottler({ source, node }: Place, found: Map<string, KnownThrottler>): boolean {
    const { ts } = source;
    if (!ts.isObjectLiteralExpression(node)) return false;
    const given = source.property(node, 'name');
    const name = given === undefined ? 'default' : source.literal(source.valueOf(given));
    if (name === undefined || (given === undefined && node.properties.some(ts.isSpreadAssignment))) return false;
    const text = (property: string, isDuration: boolean): string | undefined => {
      const value = source.valueOf(source.property(node, property));
      if (value === undefined || constantOf(source, value) === undefined) return undefined;
      return isDuration ? durationOf(source, value, this.unitOf(source)) : source.before(value);
    };
    found.set(name, { limit: text('limit', false), ttl: text('ttl', true) });
    return true;
  }
}

export function isTest({ shown }: Source): boolean {
  return /\.(?:e2e-)?spec\.|\.test\.|(?:^|\/)tests?\//.test(shown);
}

function moduleCalls(source: Source): { source: Source; call: TS.CallExpression; method: string }[] {
  const { ts } = source;
  const local = source.localOf(THROTTLER, 'ThrottlerModule');
  if (local === undefined) return [];
  return source.usesOf(local).flatMap(({ parent }) => {
    const call = parent.parent;
    if (!ts.isPropertyAccessExpression(parent) || !ts.isCallExpression(call) || call.expression !== parent) return [];
    return /^forRoot(?:Async)?$/.test(parent.name.text) ? [{ source, call, method: parent.name.text }] : [];
  });
}
