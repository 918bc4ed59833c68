import type TS from 'typescript';
import { importOf } from '../imports.js';
import type { Source } from '../source.js';
import { durationOf, numberOf, quoted } from '../values.js';
import { type Place, THROTTLER, type ThrottlerFacts } from './facts.js';
import type { GuardUse } from './guard-use.js';
import { convertLimit, isFunction, type LimitForm, limitOfExpression, limitText } from './limits.js';

/** Converts `@Throttle` and `@SkipThrottle`, and code that calls them as functions. */
export class Decorators {
  constructor(
    private readonly facts: ThrottlerFacts,
    private readonly use: GuardUse,
  ) {}

  convert(source: Source): void {
    this.calls(source, 'Throttle', (call) => this.throttle(source, call));
    this.calls(source, 'SkipThrottle', (call) => this.skip(source, call));
  }

  private calls(source: Source, name: string, convert: (call: TS.CallExpression) => void): void {
    const local = source.localOf(THROTTLER, name);
    if (local === undefined) return;
    for (const node of source.usesOf(local)) {
      const call = node.parent;
      if (source.ts.isCallExpression(call) && call.expression === node) convert(call);
      else source.leave(node, `${name} isn't a call here: convert it by hand`);
    }
  }

  private throttle(source: Source, call: TS.CallExpression): void {
    const limits = this.limitsOf(source, call);
    if (limits === undefined) {
      const why = 'what @Throttle gets is known only when the app runs: use @RateLimit with a whole limit';
      source.leave(call, why);
      return;
    }
    const dead = limits.filter(({ name }) => this.facts.throttlers?.has(name) === false);
    for (const { name, text } of dead) {
      const why = `no throttler of the module is named '${name}', so nothing was limited by it: taken out; to limit, write @RateLimit(${text})`;
      source.leave(call, why);
    }
    const texts = limits.filter((limit) => !dead.includes(limit)).map(({ text }) => text);
    if (texts.length === 0) {
      this.removeCall(source, call);
      return;
    }
    source.done(call, `@Throttle -> @RateLimit`);
    this.noteSkipped(source, call, new Set(limits.map(({ name }) => name)));
    source.rewrite(call, `${source.own('RateLimit')}(${texts.join(', ')})`);
  }

  /** The limits of a call; `undefined` if they can't be determined. */
  private limitsOf(source: Source, call: TS.CallExpression): { name: string; text: string }[] | undefined {
    const { ts } = source;
    const [first, second] = call.arguments;
    const owner = this.ownerOf(source, call);
    const guard = owner === undefined ? undefined : this.use.keyAt(source, owner);
    if (guard !== undefined) importOf(source, guard.source, guard.name);
    const perRoute = (owner === undefined || !ts.isMethodDeclaration(owner)) && this.use.applied?.isShared !== true;
    const form = (name: string): LimitForm => {
      const known = this.facts.throttlers?.get(name);
      return { name, perRoute, rate: known?.limit, interval: known?.ttl, key: guard?.name };
    };
    const object = first === undefined ? undefined : source.bare(first);
    if (second !== undefined || (object !== undefined && ts.isNumericLiteral(object))) {
      if (first === undefined || isFunction(source, first)) return undefined;
      // Up to version 4: units, then seconds.
      const interval = second === undefined ? "'1m'" : durationOf(source, second, 1000);
      const limit = { ...form('default'), rate: numberOf(source, first), interval };
      return [{ name: 'default', text: limitText(this.facts, source, limit) }];
    }
    if (object === undefined) return undefined;
    if (!ts.isObjectLiteralExpression(object)) return this.named(source, object, form);
    const limits: { name: string; text: string }[] = [];
    for (const property of object.properties) {
      const name = source.nameOf(property.name);
      const value = source.valueOf(property);
      if (name === undefined || value === undefined) return undefined;
      const text = this.limitText(source, value, form(name));
      if (text === undefined) return undefined;
      limits.push({ name, text });
    }
    return limits;
  }

  private limitText(source: Source, value: TS.Expression, form: LimitForm): string | undefined {
    const { ts } = source;
    const node = source.bare(value);
    if (ts.isObjectLiteralExpression(node)) {
      if (!convertLimit(this.facts, source, node, form)) return undefined;
      return dedented(source, node, source.now(node));
    }
    if (!ts.isIdentifier(node) && !ts.isPropertyAccessExpression(node)) return undefined;
    return this.limitOf(source, source.before(node), this.facts.resolve(source, node)[0], form);
  }

  /** A limit made of the text of an expression, whose options are in another place. */
  private limitOf(source: Source, text: string, place: Place | undefined, form: LimitForm): string | undefined {
    if (place === undefined || !source.ts.isObjectLiteralExpression(place.node)) return undefined;
    const names = place.node.properties.map((one) => place.source.nameOf(one.name));
    // Some may come from elsewhere.
    if (names.includes(undefined)) return undefined;
    return limitOfExpression(this.facts, source, text, new Set(names as string[]), form);
  }

  /** The limits of a constant with several of them. */
  private named(source: Source, node: TS.Expression, form: (name: string) => LimitForm) {
    const { ts } = source;
    if (!ts.isIdentifier(node) && !ts.isPropertyAccessExpression(node)) return undefined;
    const [place] = this.facts.resolve(source, node);
    if (place === undefined || !ts.isObjectLiteralExpression(place.node)) return undefined;
    const limits: { name: string; text: string }[] = [];
    for (const property of place.node.properties) {
      const name = place.source.nameOf(property.name);
      const value = place.source.valueOf(property);
      if (name === undefined || value === undefined) return undefined;
      const access = /^[\p{L}$_][\p{L}\p{N}$_]*$/u.test(name) ? `.${name}` : `[${quoted(source, name)}]`;
      const inner = this.facts.resolve(place.source, value)[0];
      const text = this.limitOf(source, source.before(node) + access, inner, form(name));
      if (text === undefined) return undefined;
      limits.push({ name, text });
    }
    return limits;
  }

  private skip(source: Source, call: TS.CallExpression): void {
    const { ts } = source;
    const { throttlers } = this.facts;
    const [argument] = call.arguments;
    const node = argument && source.bare(argument);
    const skipped: string[] = [];
    const counted: string[] = [];
    const why = 'what @SkipThrottle gets is known only when the app runs: use the option skip of a limit';
    const leaveUnread = (): void => source.leave(call, why);
    if (node === undefined || node.kind === ts.SyntaxKind.TrueKeyword) skipped.push('default');
    else if (node.kind === ts.SyntaxKind.FalseKeyword) counted.push('default');
    else if (ts.isObjectLiteralExpression(node)) {
      for (const property of node.properties) {
        const name = source.nameOf(property.name);
        const value = source.valueOf(property)?.kind;
        if (name === undefined || (value !== ts.SyntaxKind.TrueKeyword && value !== ts.SyntaxKind.FalseKeyword)) {
          leaveUnread();
          return;
        }
        (value === ts.SyntaxKind.TrueKeyword ? skipped : counted).push(name);
      }
    } else {
      leaveUnread();
      return;
    }
    const known = skipped.filter((name) => throttlers === undefined || throttlers.has(name));
    const unknown = skipped.filter((name) => !known.includes(name));
    if (unknown.length > 0) {
      const names = unknown.map((name) => `'${name}'`).join(', ');
      const note = `no throttler of the module is named ${names}, so @SkipThrottle skipped nothing there: taken out; @SkipRateLimit() skips all`;
      source.leave(call, note);
    }
    const texts: string[] = [];
    if (known.length > 0) {
      const isAll = throttlers === undefined ? node === undefined : known.length === throttlers.size;
      const names = isAll ? '' : known.map((name) => quoted(source, name)).join(', ');
      texts.push(`${source.own('SkipRateLimit')}(${names})`);
    }
    const again = counted
      .filter((name) => throttlers?.has(name) !== false)
      .map((name) => this.again(source, call, name));
    if (again.includes(undefined)) {
      const note =
        'the limit that holds here again is known only when the app runs: write @RateLimit with a whole limit';
      source.leave(call, note);
      return;
    }
    const limits = again.filter((text): text is string => text !== undefined && text !== '');
    if (limits.length > 0) texts.push(`${source.own('RateLimit')}(${limits.join(', ')})`);
    if (texts.length === 0) this.removeCall(source, call);
    else {
      const isDecorator = ts.isDecorator(call.parent);
      source.rewrite(call, texts.join(isDecorator ? ' @' : ', '));
      source.done(call, `@SkipThrottle -> @${texts.join(' @').replaceAll(/\(\{.*/g, '(…)')}`);
    }
  }

  /** The limit that applies again to a route of a skipped class; empty if its class isn't skipped. */
  private again(source: Source, call: TS.CallExpression, name: string): string | undefined {
    const { ts } = source;
    const owner = this.ownerOf(source, call);
    if (owner === undefined || !ts.isMethodDeclaration(owner)) return '';
    if (!this.hasDecorator(source, owner.parent, 'SkipThrottle')) return '';
    if (this.hasDecorator(source, owner, 'Throttle')) return '';
    const known = this.facts.throttlers?.get(name);
    if (known?.limit === undefined || known.ttl === undefined) return undefined;
    const limit = { name, perRoute: false, rate: known.limit, interval: known.ttl };
    return limitText(this.facts, source, limit, known.ttl);
  }

  /** Notes that a skipped route with limits of its own had no limit before, and has these limits now. */
  private noteSkipped(source: Source, call: TS.CallExpression, names: ReadonlySet<string>): void {
    const { ts } = source;
    const owner = this.ownerOf(source, call);
    if (owner === undefined || !ts.isMethodDeclaration(owner)) return;
    const skips = this.decoratorsOf(source, owner.parent, 'SkipThrottle');
    if (this.decoratorsOf(source, owner, 'SkipThrottle').length > 0 || skips.length === 0) return;
    const isSkipped = skips.some(({ arguments: [argument] }) => {
      if (argument === undefined || !ts.isObjectLiteralExpression(argument)) return names.has('default');
      return argument.properties.some((one) => names.has(source.nameOf(one.name) ?? ''));
    });
    if (!isSkipped) return;
    const why =
      'the class was skipped, and this route with it: its @RateLimit holds now; take it out if that is not meant';
    source.leave(call, why);
  }

  private hasDecorator(source: Source, node: TS.Node, name: string): boolean {
    return this.decoratorsOf(source, node, name).length > 0;
  }

  private decoratorsOf(source: Source, node: TS.Node, name: string): TS.CallExpression[] {
    const { ts } = source;
    const local = source.localOf(THROTTLER, name);
    return source
      .decoratorsOf(node)
      .map(({ expression }) => expression)
      .filter((one): one is TS.CallExpression => ts.isCallExpression(one) && source.before(one.expression) === local);
  }

  private ownerOf(source: Source, call: TS.CallExpression): TS.Node | undefined {
    return source.ts.isDecorator(call.parent) ? call.parent.parent : undefined;
  }

  private removeCall(source: Source, call: TS.CallExpression): void {
    const { parent } = call;
    if (source.ts.isDecorator(parent)) source.removeLine(parent);
    else if (source.ts.isCallExpression(parent)) source.remove(parent.arguments, new Set([call]));
    else source.rewrite(call, `${source.own('RateLimit')}()`);
  }
}

/** The text of an object that was more deeply indented before. */
function dedented(source: Source, object: TS.ObjectLiteralExpression, text: string): string {
  if (!text.includes('\n')) return text;
  const by = source.indentOf(object).length - source.indentOf(object.parent.parent).length;
  return by <= 0 ? text : text.replaceAll(new RegExp(String.raw`\n[ \t]{1,${by}}`, 'g'), '\n');
}
