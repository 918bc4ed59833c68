import { basename } from 'node:path';
import type TS from 'typescript';
import type { Source } from '../source.js';
import type { ThrottlerFacts } from './facts.js';
import { requestOf } from './option-values.js';
import { type Guard, REPLACED, superCalls } from './guards.js';

/** Converts classes that extend `ThrottlerGuard` to classes that return keys, or removes them. */
export function convertGuards(facts: ThrottlerFacts): void {
  for (const guard of facts.guards.values()) {
    const { name, source, node, outcome, reason, sameAs } = guard;
    if (outcome === 'left') source.leave(node, `${name} stays, and nothing uses it any more: ${reason}`);
    else if (outcome === 'dropped') {
      source.done(node, `${name} is gone: ${sameAs?.name ?? 'RateLimitGuard'} reads each kind of call`);
      dropClass(facts, guard);
    } else {
      source.done(node, `${name} -> a KeyResolver`);
      toKeyResolver(facts, guard);
    }
  }
}

/** Removes a class. If another file exports everything from its file, the file remains a module. */
function dropClass(facts: ThrottlerFacts, { name, source, node }: Guard): void {
  source.removeLine(node);
  const hasMore = source.ast.statements.some((one) => one !== node && !source.ts.isImportDeclaration(one));
  const file = basename(source.shown).replace(/\.[cm]?tsx?$/, '');
  const mentions = new RegExp(String.raw`\b${name}\b|${file.replaceAll('.', String.raw`\.`)}['".]`);
  for (const other of facts.project.matching(mentions)) {
    for (const statement of other.ast.statements) {
      if (!other.ts.isExportDeclaration(statement) || statement.moduleSpecifier === undefined) continue;
      const names = statement.exportClause;
      if (names !== undefined && other.ts.isNamedExports(names)) {
        const gone = names.elements.filter((one) => (one.propertyName ?? one.name).text === name);
        if (gone.length === 0) continue;
        if (gone.length === names.elements.length) other.removeLine(statement);
        else other.remove(names.elements, new Set(gone));
      } else if (!hasMore && other.before(statement.moduleSpecifier).includes(`/${file}`)) {
        other.removeLine(statement);
      }
    }
  }
}

function toKeyResolver(facts: ThrottlerFacts, { source, node, exempts, isForAll }: Guard): void {
  const { ts } = source;
  const find = (name: string) => source.method(node, name);
  const clauses = node.heritageClauses ?? [];
  const implemented = clauses.find(({ token }) => token === ts.SyntaxKind.ImplementsKeyword);
  const extended = clauses.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword)!;
  const own = source.own('type KeyResolver');
  if (implemented === undefined) source.rewrite(extended, `implements ${own}`);
  else {
    source.edits.replace(extended.getStart(source.ast), implemented.getStart(source.ast), '');
    source.edits.insert(implemented.end, `, ${own}`);
  }
  convertConstructor(source, node);
  for (const member of node.members) {
    const modifiers = ts.canHaveModifiers(member) ? ts.getModifiers(member) : undefined;
    const override = modifiers?.find(({ kind }) => kind === ts.SyntaxKind.OverrideKeyword);
    if (override !== undefined) source.edits.replace(override.getStart(source.ast), override.end + 1, '');
  }
  for (const name of [...REPLACED, 'errorMessage']) {
    const member = find(name);
    if (member !== undefined) source.removeLine(member, true);
  }
  const reader = find('getRequestResponse');
  const isReplaced = isForAll === true && reader !== undefined;
  if (isReplaced) source.removeLine(reader, true);
  const [tracker, requests, skip, activate] = ['getTracker', 'getRequestResponse', 'shouldSkip', 'canActivate'].map(
    find,
  );
  convertSupers(source, node);
  // It decided which requests pass; now it returns true for those that limits skip.
  if (activate !== undefined) source.rewrite(activate.name, 'isExempt');
  const request =
    requests === undefined || isReplaced ? requestOf(source, facts, 'context') : 'this.getRequestResponse(context).req';
  const tracked = tracker?.parameters.length === 2 ? 'request, context' : 'request';
  source.want('@nestjs/common', 'type ExecutionContext');
  const lines = [
    '',
    '  /** Whom limits count. */',
    '  async resolve(context: ExecutionContext): Promise<string | undefined> {',
  ];
  if (skip !== undefined) lines.push('    if (await this.shouldSkip(context)) return undefined;');
  if (activate !== undefined) lines.push('    if (await this.isExempt(context)) return undefined;');
  lines.push(`    const request = ${request};`);
  const address = exempts || tracker === undefined ? `${source.own('ipIdentity')}(request.ip)` : '';
  if (tracker === undefined) lines.push(`    return ${address};`);
  else if (exempts) lines.push(`    return (await this.getTracker(${tracked})) || ${address};`);
  else lines.push(`    return this.getTracker(${tracked});`);
  lines.push('  }', '');
  source.edits.insert(node.end - 1, lines.join('\n'));
}

/** Removes the arguments of the base class. */
function convertConstructor(source: Source, node: TS.ClassDeclaration): void {
  const { ts } = source;
  const declared = node.members.find(ts.isConstructorDeclaration);
  const usesReflector = source.before(node).includes('this.reflector');
  if (declared?.body === undefined) {
    if (!usesReflector) return;
    source.want('@nestjs/core', 'Reflector');
    const start = node.members[0]?.getStart(source.ast);
    if (start !== undefined) source.edits.insert(start, 'constructor(private readonly reflector: Reflector) {}\n\n  ');
    return;
  }
  const isSuper = (node: TS.Expression): node is TS.CallExpression =>
    ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.SuperKeyword;
  const call = declared.body.statements.filter(ts.isExpressionStatement).find(({ expression }) => isSuper(expression));
  const given = new Set(
    (call?.expression as TS.CallExpression | undefined)?.arguments.map((one) => source.before(one)),
  );
  const removed = new Set<TS.Node>();
  for (const parameter of declared.parameters) {
    const name = source.before(parameter.name);
    if (!given.has(name)) continue;
    if (name === 'reflector' && usesReflector) {
      if ((parameter.modifiers ?? []).length === 0)
        source.edits.insert(parameter.getStart(source.ast), 'private readonly ');
    } else {
      removed.add(parameter);
    }
  }
  if (call !== undefined && declared.body.statements.length === 1) source.rewrite(declared.body, '{}');
  else if (call !== undefined) source.removeLine(call);
  const isEmpty = removed.size === declared.parameters.length && declared.body.statements.length <= 1;
  if (isEmpty) source.removeLine(declared, true);
  else source.remove(declared.parameters, removed);
}

/** Replaces calls of the base class by their results. */
function convertSupers(source: Source, node: TS.ClassDeclaration): void {
  for (const call of superCalls(source, node, 'getTracker')) {
    const request = call.arguments[0] === undefined ? 'undefined' : source.now(call.arguments[0]);
    const text = `${source.own('ipIdentity')}(${request}.ip) ?? ''`;
    source.rewrite(call, isInAsync(source, call) ? `(${text})` : `Promise.resolve(${text})`);
  }
  for (const call of ['shouldSkip', 'canActivate'].flatMap((name) => superCalls(source, node, name))) {
    rewriteToFalse(source, call);
  }
  for (const call of superCalls(source, node, 'getRequestResponse')) {
    const context = call.arguments[0] === undefined ? 'context' : source.now(call.arguments[0]);
    source.rewrite(
      call,
      `{ req: ${context}.switchToHttp().getRequest(), res: ${context}.switchToHttp().getResponse() }`,
    );
  }
}

/** Replaces a call, and an `await` before it, by `false`. */
function rewriteToFalse(source: Source, call: TS.CallExpression): void {
  const { parent } = call;
  if (source.ts.isAwaitExpression(parent)) source.rewrite(parent, 'false');
  else source.rewrite(call, isInAsync(source, call) ? 'false' : 'Promise.resolve(false)');
}

function isInAsync(source: Source, node: TS.Node): boolean {
  const { ts } = source;
  const fn = ts.findAncestor(node.parent, ts.isFunctionLike);
  const modifiers = fn !== undefined && ts.canHaveModifiers(fn) ? ts.getModifiers(fn) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) === true;
}
