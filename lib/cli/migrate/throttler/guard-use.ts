import type TS from 'typescript';
import { isIn, type Source } from '../source.js';
import { isTest, THROTTLER, type ThrottlerFacts } from './facts.js';
import type { Guard } from './guards.js';

/** A place that names a guard: the provider of a global guard, an entry in a list of providers, or any other. */
interface Reference {
  readonly source: Source;
  readonly node: TS.Identifier;
  /** `undefined` for `ThrottlerGuard` itself. */
  readonly guard: Guard | undefined;
  readonly kind: 'global' | 'listed' | 'bound' | 'made';
}

/** The bindings of the throttler's guards in a project, and their replacements. */
export class GuardUse {
  /** The option `guard` of the module. */
  readonly guard: boolean | 'custom';
  /** The guard whose overrides apply to all limits. */
  readonly applied: Guard | undefined;
  private readonly references: readonly Reference[];

  constructor(private readonly facts: ThrottlerFacts) {
    this.references = facts.sources.flatMap((source) => referencesOf(facts, source));
    const bound = this.references.filter(({ source, kind }) => kind !== 'listed' && !isTest(source));
    const globals = bound.filter(({ kind }) => kind === 'global');
    this.guard = globals.length > 0 ? this.isFirst(globals) : bound.length > 0 ? false : 'custom';
    const kinds = new Set(bound.map(({ guard }) => (isPlain(guard) ? undefined : (guard?.sameAs ?? guard))));
    const [only] = kinds;
    const dropped = bound.map(({ guard }) => guard).find((guard) => guard?.outcome === 'dropped');
    this.applied = kinds.size === 1 ? (only ?? dropped) : undefined;
  }

  /** True if guards have keys that only apply where the guards are bound. */
  get isMixed(): boolean {
    return this.applied === undefined && [...this.facts.guards.values()].some(({ outcome }) => outcome === 'key');
  }

  /** The guard with its own keys that is bound to a class or method. */
  keyAt(source: Source, node: TS.Node): Guard | undefined {
    if (!this.isMixed) return undefined;
    const isKey = (one: Reference): boolean =>
      one.source === source && one.guard?.outcome === 'key' && one.kind === 'bound';
    const { ts } = source;
    const owners = ts.isMethodDeclaration(node) ? [node, node.parent] : [node];
    const decorators = owners.flatMap((owner) => source.decoratorsOf(owner));
    return this.references.find((one) => isKey(one) && decorators.some((at) => isIn(one.node, at)))?.guard;
  }

  convert(): void {
    const removed = new Map<TS.ArrayLiteralExpression, { source: Source; nodes: Set<TS.Node> }>();
    const take = (source: Source, list: TS.ArrayLiteralExpression, node: TS.Node): void => {
      const nodes = removed.get(list)?.nodes ?? new Set();
      removed.set(list, { source, nodes: nodes.add(node) });
    };
    for (const { source, node, guard, kind } of this.references) {
      const name = node.text;
      if (kind === 'made') {
        source.leave(node, `new ${name}(…): bind RateLimitGuard by @UseGuards or the module instead`);
      } else if (kind === 'global') {
        const provider = node.parent.parent as TS.ObjectLiteralExpression;
        const list = provider.parent;
        const isListed =
          source.ts.isArrayLiteralExpression(list) && list.elements.some((one) => source.before(one) === name);
        const needsProvider = guard?.outcome === 'key' && !isListed;
        if (this.guard === true && source.ts.isArrayLiteralExpression(list) && !needsProvider)
          take(source, list, provider);
        else if (this.guard === true) source.rewrite(provider, name);
        else {
          source.rewrite(node, source.own('RateLimitGuard'));
          if (needsProvider && source.ts.isArrayLiteralExpression(list))
            source.edits.insert(provider.getStart(source.ast), `${name}, `);
        }
        source.done(node, `APP_GUARD ${name} -> ${this.guard === true ? "the module's own guard" : 'RateLimitGuard'}`);
      } else if (kind === 'listed') {
        if (guard?.outcome === 'key') continue;
        take(source, node.parent as TS.ArrayLiteralExpression, node);
        source.done(node, `${name} is no longer a provider`);
      } else {
        source.rewrite(node, source.own('RateLimitGuard'));
        source.done(node, `${name} -> RateLimitGuard`);
      }
    }
    for (const [list, { source, nodes }] of removed) source.removeFrom(list, nodes);
    if (!this.isMixed) return;
    for (const { source, node, guard, kind } of this.references) {
      if (guard?.outcome !== 'key') continue;
      if (kind === 'bound' && this.haveOwnLimits(source, node)) continue;
      const why = `${guard.name} is one of several guards: limits of the module count by address here; give key: ${guard.name} to a limit of these routes`;
      source.leave(node, why);
    }
  }

  /** Returns true if all routes of a guard have limits of their own, with its key, that replace those of the module. */
  private haveOwnLimits(source: Source, guard: TS.Node): boolean {
    const { ts } = source;
    const owner = ts.findAncestor(guard, ts.canHaveDecorators);
    if (owner === undefined) return false;
    const { members = [] } = owner as Partial<TS.ClassLikeDeclaration>;
    const routes = ts.isClassLike(owner) ? members.filter((member) => source.decoratorsOf(member).length > 0) : [owner];
    const onClass = ts.isClassLike(owner) ? owner : owner.parent;
    const replaces = (node: TS.Node) => source.decoratorsOf(node).some((each) => this.replacesAll(source, each));
    return replaces(onClass) || (routes.length > 0 && routes.every(replaces));
  }

  /** Returns true if a decorator replaces or skips all limits of the module. */
  private replacesAll(source: Source, { expression }: TS.Decorator): boolean {
    const { ts } = source;
    if (!ts.isCallExpression(expression)) return false;
    const name = source.before(expression.expression);
    const [first, second] = expression.arguments;
    if (name === source.localOf(THROTTLER, 'SkipThrottle')) return first === undefined;
    if (name !== source.localOf(THROTTLER, 'Throttle') || first === undefined) return false;
    const object = source.bare(first);
    // Up to version 4, `@Throttle` had units and seconds.
    const isUnnamed = second !== undefined || !ts.isObjectLiteralExpression(object);
    const names = isUnnamed ? ['default'] : object.properties.map((each) => source.nameOf(each.name));
    const { throttlers } = this.facts;
    return throttlers !== undefined && [...throttlers.keys()].every((each) => names.includes(each));
  }

  /** Returns true if the module may bind its guard, which runs before all others. */
  private isFirst(globals: readonly Reference[]): boolean {
    const others = this.facts.project
      .matching(/\bAPP_GUARD\b/)
      .filter((source) => !isTest(source))
      .flatMap((source) =>
        source
          .usesOf('APP_GUARD')
          .filter(({ parent }) => source.ts.isPropertyAssignment(parent))
          .map((node) => ({ source, node })),
      );
    const [first] = globals;
    if (first === undefined || others.length === globals.length) return true;
    // Nest binds guards of one file in their order.
    return (
      others.every(({ source }) => source === first.source) &&
      others.every(({ node }) => node.parent.parent.pos >= first.node.parent.parent.pos) &&
      first.guard?.outcome !== 'key'
    );
  }
}

/** Returns true if a guard does the same as `ThrottlerGuard`, or as the module does by default. */
function isPlain(guard: Guard | undefined): boolean {
  return (
    guard === undefined ||
    guard.outcome === 'left' ||
    (guard.outcome === 'dropped' &&
      guard.sameAs === undefined &&
      guard.message === undefined &&
      guard.body === undefined &&
      !guard.isShared)
  );
}

function referencesOf(facts: ThrottlerFacts, source: Source): Reference[] {
  const { ts } = source;
  const names = new Map<string, Guard | undefined>();
  const local = source.localOf(THROTTLER, 'ThrottlerGuard');
  if (local !== undefined) names.set(local, undefined);
  for (const [name, guard] of facts.guards) {
    if (guard.source === source || source.imported.get(name)?.name === name) names.set(name, guard);
  }
  const references: Reference[] = [];
  for (const [name, guard] of names) {
    for (const node of source.usesOf(name)) {
      const { parent } = node;
      if (ts.isExpressionWithTypeArguments(parent) || ts.isClassDeclaration(parent) || ts.isExportSpecifier(parent))
        continue;
      // The code of a guard contains its own name only in log texts.
      if (guard?.source === source && isIn(node, guard.node) && !ts.isDecorator(parent.parent)) continue;
      references.push({ source, node, guard, kind: kindOf(source, node) });
    }
  }
  return references;
}

function kindOf(source: Source, node: TS.Identifier): Reference['kind'] {
  const { ts } = source;
  const { parent } = node;
  if (ts.isNewExpression(parent)) return 'made';
  if (ts.isPropertyAssignment(parent) && /^use(?:Class|Existing)$/.test(source.before(parent.name))) {
    const token = source.valueOf(source.property(parent.parent, 'provide'));
    return token !== undefined && source.before(token) === 'APP_GUARD' ? 'global' : 'bound';
  }
  if (!ts.isArrayLiteralExpression(parent)) return 'bound';
  const owner = parent.parent;
  return ts.isPropertyAssignment(owner) && /^(?:providers|exports)$/.test(source.before(owner.name))
    ? 'listed'
    : 'bound';
}
