import type TS from 'typescript';
import type { Source } from '../source.js';
import { durationOf, numberOf, quoted } from '../values.js';
import { isTest, THROTTLER, type ThrottlerFacts } from './facts.js';
import { convertFunctions, convertStorage, headersByName, messageOf } from './option-values.js';
import type { GuardUse } from './guard-use.js';
import { convertLimit, limitOfHelper, limitText, sharesKeys } from './limits.js';
import { importOf } from '../imports.js';

export class ModuleOptions {
  private readonly done = new Set<TS.Node>();

  constructor(
    private readonly facts: ThrottlerFacts,
    private readonly use: GuardUse,
  ) {}

  convertAll(): void {
    let first: string | undefined;
    for (const { source, call, method } of this.facts.calls) {
      const [argument] = call.arguments;
      const name = (call.expression as TS.PropertyAccessExpression).expression;
      const isDone = method === 'forRoot' ? this.forRoot(source, call, argument) : this.forRootAsync(source, argument);
      if (!isDone) {
        const why = `the options of ThrottlerModule.${method} cannot be read from here: write RateLimitModule.${method} by hand`;
        source.leave(call, why);
        continue;
      }
      source.rewrite(name, source.own('RateLimitModule'));
      if (!isTest(source) && first !== undefined) {
        const why = `RateLimitModule is set up once for an app, and that is done at ${first}: of several throttler modules, one won; keep that one`;
        source.leave(call, why);
      }
      if (!isTest(source)) first ??= `${source.shown}:${source.lineOf(call)}`;
      source.done(call, `ThrottlerModule.${method} -> RateLimitModule.${method}`);
      if (this.facts.blocks(source) || this.facts.algo === 'fixed-window') continue;
      const why =
        'rejected attempts no longer extend the wait, as they did up to version 5: see countRefused of other algorithms';
      source.leave(call, why);
    }
    for (const source of this.facts.sources) this.annotated(source);
  }

  private forRoot(source: Source, call: TS.CallExpression, argument: TS.Expression | undefined): boolean {
    if (argument === undefined) {
      source.edits.insert(call.end - 1, `{ ${this.extras(source, call).join(', ')} }`);
      return true;
    }
    const isDone = this.options(source, argument, true);
    const extras = this.extras(source, call);
    if (!isDone || extras.length === 0) return isDone;
    const inner = source.bare(argument);
    const isLiteral = source.ts.isObjectLiteralExpression(inner) || source.ts.isArrayLiteralExpression(inner);
    const [text, more] = [source.now(argument), extras.join(', ')];
    source.rewrite(
      argument,
      isLiteral
        ? text.replace(/^\{(\s*)/, (_, space: string) => `{${space}${more},${space || ' '}`)
        : `{ ...${text}, ${more} }`,
    );
    return true;
  }

  private extras(source: Source, call: TS.Node): string[] {
    const { guard } = this.use;
    if (guard === true) return [];
    if (guard === 'custom') {
      const why =
        "no ThrottlerGuard is bound anywhere, so nothing was limited: guard: 'custom' keeps that; take it out to turn the limits on";
      source.leave(call, why);
    }
    return [`guard: ${guard === false ? 'false' : "'custom'"}`];
  }

  private forRootAsync(source: Source, argument: TS.Expression | undefined): boolean {
    const { ts } = source;
    if (argument === undefined || !ts.isObjectLiteralExpression(argument)) return false;
    const factory = source.property(argument, 'useFactory');
    const by = source.property(argument, 'useClass') ?? source.property(argument, 'useExisting');
    if (factory !== undefined) {
      const value = ts.isMethodDeclaration(factory) ? factory : source.valueOf(factory);
      if (value === undefined) return false;
      const places = ts.isIdentifier(value) ? [value] : source.returned(value);
      if (places.length === 0 || !places.every((node) => this.options(source, node, true))) return false;
    } else if (by === undefined) {
      return false;
    }
    source.extend(argument, [], this.extras(source, argument), argument.properties);
    return true;
  }

  /** Converts functions and constants that are declared as options of the module, or return these. */
  private annotated(source: Source): void {
    const { ts } = source;
    const local = source.localOf(THROTTLER, 'ThrottlerModuleOptions');
    const method = 'createThrottlerOptions';
    source.visit(source.ast, (node) => {
      if (ts.isMethodDeclaration(node) && source.before(node.name) === method) {
        const isTyped = node.type !== undefined;
        const isDone = source.returned(node).every((one) => this.options(source, one, isTyped));
        if (!isDone) source.leave(node, `what ${method}() returns cannot be read from here`);
        source.rewrite(node.name, 'create');
        source.done(node, `${method}() -> create()`);
      }
      if (local === undefined || !ts.isTypeReferenceNode(node) || source.before(node.typeName) !== local) return;
      const owner = ts.isTypeReferenceNode(node.parent) ? node.parent.parent : node.parent;
      if (ts.isVariableDeclaration(owner) && owner.initializer !== undefined)
        this.options(source, owner.initializer, true);
      else if (ts.isFunctionLike(owner)) for (const one of source.returned(owner)) this.options(source, one, true);
    });
  }

  /** Converts options of the module in any place. Returns true if it can. */
  private options(source: Source, expression: TS.Expression, isTyped: boolean): boolean {
    const { ts } = source;
    const node = source.bare(expression);
    if (this.done.has(node)) return true;
    if (ts.isAwaitExpression(node)) return this.options(source, node.expression, isTyped);
    if (ts.isConditionalExpression(node)) {
      return this.options(source, node.whenTrue, isTyped) && this.options(source, node.whenFalse, isTyped);
    }
    if (ts.isArrayLiteralExpression(node)) {
      this.done.add(node);
      this.list(source, node);
      this.wrapList(source, node, isTyped);
      return true;
    }
    if (ts.isObjectLiteralExpression(node)) {
      this.done.add(node);
      return this.object(source, node, isTyped);
    }
    const name = ts.isCallExpression(node) ? node.expression : node;
    if (!ts.isIdentifier(name)) return false;
    const declared = this.facts.project.declaration(source, name.text);
    if (declared?.node === undefined) return false;
    const { source: other, node: target } = declared;
    if (ts.isFunctionLike(target)) {
      const type = (target as TS.SignatureDeclaration).type;
      const returned = other.returned(target);
      return returned.length > 0 && returned.every((one) => this.options(other, one, type !== undefined));
    }
    const owner = target.parent;
    return this.options(other, target, ts.isVariableDeclaration(owner) && owner.type !== undefined);
  }

  /** The options of the module other than its limits. */
  private head(
    source: Source,
    given: { headers?: string; message?: string | undefined; defaults?: string[] },
  ): string[] {
    const { throttlers } = this.facts;
    const isPlain = throttlers !== undefined && [...throttlers.keys()].every((name) => name === 'default');
    const headers = given.headers ?? (isPlain ? "'legacy'" : headersByName(source));
    const guard = this.use.applied;
    const ofModule = guard?.overridesMessage === true ? undefined : given.message;
    const usual = quoted(source, 'ThrottlerException: Too Many Requests');
    const defaults = [`message: ${ofModule ?? guard?.message ?? usual}`, ...(given.defaults ?? [])];
    if (guard?.outcome === 'key' && !defaults.some((entry) => entry.startsWith('key:'))) {
      importOf(source, guard.source, guard.name);
      defaults.push(`key: ${guard.name}`);
      if (guard.exempts) defaults.push("onMissingKey: 'skip'");
    }
    const usualBody = '(_context, _result, { message }) => ({ statusCode: 429, message })';
    return [
      `headers: ${headers}`,
      `body: ${guard?.body === undefined ? usualBody : `() => (${guard.body})`}`,
      `defaults: { ${defaults.join(', ')} }`,
    ];
  }

  private wrapList(source: Source, node: TS.Expression, isTyped: boolean): void {
    const indent = source.indentOf(node);
    const list = source.now(node).replaceAll('\n', '\n  ');
    const lines = [...this.head(source, {}), `limits: ${list}`].map((entry) => `${indent}  ${entry},\n`);
    const text = `{\n${lines.join('')}${indent}}${this.satisfies(source, isTyped)}`;
    source.rewrite(node, source.ts.isArrowFunction(node.parent) ? `(${text})` : text);
  }

  private satisfies(source: Source, isTyped: boolean): string {
    if (isTyped) return '';
    return ` satisfies ${source.own('type RateLimitModuleOptions')}`;
  }

  private object(source: Source, object: TS.ObjectLiteralExpression, isTyped: boolean): boolean {
    const { ts } = source;
    const property = (name: string) => source.property(object, name);
    if (object.properties.some(ts.isSpreadAssignment)) return false;
    const throttlers = property('throttlers');
    const removed = new Set<TS.Node>();
    const defaults = convertFunctions(source, this.facts, object, removed);
    let headers: string | undefined;
    let message: string | undefined;
    const generator = property('generateKey');
    if (generator !== undefined) {
      this.isShared = sharesKeys(source, generator);
      removed.add(generator);
    }
    const errorMessage = property('errorMessage');
    if (errorMessage !== undefined) {
      message = messageOf(source, errorMessage);
      removed.add(errorMessage);
      if (message === undefined && this.use.applied?.overridesMessage !== true) {
        const why = "'errorMessage' uses what no decision has: write the option 'message' of a limit by hand";
        source.leave(errorMessage, why);
      }
    }
    const setHeaders = property('setHeaders');
    if (setHeaders !== undefined) {
      const value = source.valueOf(setHeaders);
      if (value?.kind === ts.SyntaxKind.FalseKeyword) headers = 'false';
      removed.add(setHeaders);
    }
    const prefix = property('ipv6SubnetPrefix');
    if (prefix !== undefined) source.rewrite(prefix, `ipv6Prefix: ${source.now(source.valueOf(prefix)!)}`);
    const storage = property('storage');
    if (storage !== undefined && !convertStorage(source, storage)) removed.add(storage);
    const old = new Set<TS.Node>();
    const list = source.valueOf(throttlers);
    const isEmpty = list !== undefined && ts.isArrayLiteralExpression(list) && list.elements.length === 0;
    if (throttlers === undefined || isEmpty) {
      const [limit, ttl] = [property('limit'), property('ttl')];
      if (throttlers !== undefined) removed.add(throttlers);
      if (limit === undefined && ttl === undefined && throttlers === undefined) return false;
      for (const one of [limit, ttl]) if (one !== undefined) old.add(one);
    }
    const places = [...old].map((one) => object.properties.indexOf(one as TS.ObjectLiteralElementLike));
    const isTogether = old.size === 2 && Math.abs(places[0]! - places[1]!) === 1;
    const limits = old.size === 0 || isTogether ? undefined : this.oldLimit(source, object);
    if (throttlers !== undefined && !removed.has(throttlers)) this.throttlers(source, throttlers);
    if (!isTogether) for (const one of old) removed.add(one);
    const kept = object.properties.filter((one) => !removed.has(one));
    source.remove(object.properties, removed);
    const head = this.head(source, { ...(headers !== undefined && { headers }), message, defaults });
    source.extend(object, head, limits === undefined ? [] : [limits], kept);
    if (isTogether) this.oldLimitInPlace(source, object);
    source.edits.insert(object.end, this.satisfies(source, isTyped));
    return true;
  }

  private isShared = false;

  /** The limit in the form up to version 4, with `ttl` and `limit` among the other options. */
  private oldLimit(source: Source, object: TS.ObjectLiteralExpression): string {
    const [limit, ttl] = ['limit', 'ttl'].map((name) => source.valueOf(source.property(object, name)));
    const rate = limit === undefined ? '20' : numberOf(source, limit);
    const interval = ttl === undefined ? "'1m'" : durationOf(source, ttl, this.facts.unitOf(source));
    const form = { name: 'default', perRoute: !this.perAll, rate, interval };
    return `limits: [${limitText(this.facts, source, form, interval)}]`;
  }

  /** The same if both are next to each other. This preserves comments. */
  private oldLimitInPlace(source: Source, object: TS.ObjectLiteralExpression): void {
    const [limit, ttl] = [source.property(object, 'limit')!, source.property(object, 'ttl')!];
    const [first, last] = limit.pos < ttl.pos ? [limit, ttl] : [ttl, limit];
    // An insertion before the first of them is kept.
    const rewrite = (node: TS.Node, text: string): void =>
      source.edits.replace(node.getStart(source.ast), node.end, text);
    rewrite(limit, `rate: ${numberOf(source, source.valueOf(limit)!)}`);
    rewrite(ttl, `interval: ${durationOf(source, source.valueOf(ttl)!, this.facts.unitOf(source))}`);
    const algo = quoted(source, this.facts.algo);
    source.edits.insert(first.getStart(source.ast), `limits: [{ name: ${quoted(source, 'default')}, algo: ${algo}, `);
    source.edits.insert(last.end, this.perAll ? ' }]' : ', perRoute: true }]');
  }

  private get perAll(): boolean {
    return this.isShared || this.use.applied?.isShared === true;
  }

  private throttlers(source: Source, property: TS.ObjectLiteralElementLike): void {
    const { ts } = source;
    const value = source.valueOf(property);
    if (value === undefined) return;
    this.throttlerList(source, value);
    if (ts.isPropertyAssignment(property)) source.rewrite(property.name, 'limits');
    else source.rewrite(property, `limits: ${source.now(value)}`);
  }

  private throttlerList(source: Source, expression: TS.Expression): void {
    const { ts } = source;
    const node = source.bare(expression);
    if (ts.isArrayLiteralExpression(node)) {
      this.list(source, node);
      return;
    }
    if (ts.isConditionalExpression(node)) {
      for (const branch of [node.whenTrue, node.whenFalse]) this.throttlerList(source, branch);
      return;
    }
    const declared = ts.isIdentifier(node) ? this.facts.project.declaration(source, node.text) : undefined;
    const target = declared?.node;
    if (declared !== undefined && target !== undefined && !ts.isFunctionDeclaration(target)) {
      const inner = declared.source.bare(target);
      if (ts.isArrayLiteralExpression(inner)) {
        if (this.done.has(inner)) return;
        this.done.add(inner);
        this.list(declared.source, inner);
        const isTyped = ts.isVariableDeclaration(target.parent) && target.parent.type !== undefined;
        if (isTyped) return;
        const type = declared.source.own('type LimitDefinition');
        declared.source.rewrite(target, `${declared.source.now(inner)} satisfies ${type}[]`);
        return;
      }
    }
    source.rewrite(expression, `${source.now(expression)}.map(${limitOfHelper(this.facts, source)})`);
  }

  private list(source: Source, list: TS.ArrayLiteralExpression): void {
    const { ts } = source;
    const form = { name: 'default', perRoute: !this.perAll, isOfModule: true };
    for (const element of list.elements) {
      const node = source.bare(element);
      if (ts.isSpreadElement(element)) {
        this.throttlerList(source, element.expression);
      } else if (!ts.isObjectLiteralExpression(node) || !convertLimit(this.facts, source, node, form)) {
        source.rewrite(element, `${limitOfHelper(this.facts, source)}(${source.now(element)})`);
      }
    }
  }
}
