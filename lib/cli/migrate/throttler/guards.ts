import type TS from 'typescript';
import type { Project } from '../project.js';
import type { Source } from '../source.js';

/** A class that extends `ThrottlerGuard`. */
export interface Guard {
  readonly name: string;
  readonly source: Source;
  readonly node: TS.ClassDeclaration;
  /** The result for the guard: it is no longer needed, it returns the key from now on, or it is left unchanged. */
  readonly outcome: 'dropped' | 'key' | 'left';
  /** The reason why it is left unchanged, if it is. */
  readonly reason: string | undefined;
  /** The message of its rejections, if it is a literal. */
  readonly message: string | undefined;
  /** True if it throws or returns its own message, regardless of the module's `errorMessage`. */
  readonly overridesMessage: boolean;
  /** The body of its rejections, if it is a literal. */
  readonly body: string | undefined;
  readonly exempts: boolean;
  /** True if its keys are the same for all routes. */
  readonly isShared: boolean;
  /** A guard with the same keys that reads all kinds of calls. This one is removed then. */
  readonly sameAs?: Guard;
  /** True if other guards are equal to this one. */
  readonly isForAll?: boolean;
}

/** The methods of a guard that options of limits replace. */
export const REPLACED = ['throwThrottlingException', 'generateKey', 'getErrorMessage'];
const OF_THE_BASE =
  /this\.(?:options|storageService|throttlers|commonOptions|headerPrefix|generateKey|handleRequest|setResponseHeader)\b/;

/** The classes of a project that extend `ThrottlerGuard`, directly or not, by name. */
export function guardsOf(project: Project, sources: readonly Source[]): Map<string, Guard> {
  const guards = new Map<string, Guard>();
  for (const source of sources) {
    source.visit(source.ast, (node) => {
      if (!source.ts.isClassDeclaration(node) || node.name === undefined) return;
      const base = baseOf(source, node);
      if (base === undefined || source.imported.get(base)?.name !== 'ThrottlerGuard') return;
      guards.set(node.name.text, analysed(source, node));
    });
  }
  merge(guards);
  // The classes that extend these in turn.
  for (const source of guards.size === 0
    ? []
    : project.matching(new RegExp(`extends (?:${[...guards.keys()].join('|')})\\b`))) {
    source.visit(source.ast, (node) => {
      if (!source.ts.isClassDeclaration(node) || node.name === undefined || guards.has(node.name.text)) return;
      const base = baseOf(source, node);
      if (base === undefined || !guards.has(base)) return;
      const reason = `it extends ${base}: put its overrides into options of limits`;
      guards.set(node.name.text, { ...analysed(source, node), outcome: 'left', reason });
    });
  }
  return guards;
}

/** Merges guards that differ only in the kind of calls that they read, such as one for REST and one for GraphQL. */
function merge(guards: Map<string, Guard>): void {
  const groups = new Map<string, Guard[]>();
  for (const guard of guards.values()) {
    const { source, node } = guard;
    if (guard.outcome !== 'key' || node.members.some((member) => source.ts.isConstructorDeclaration(member))) continue;
    const texts = node.members
      .filter((member) => member.name === undefined || source.before(member.name) !== 'getRequestResponse')
      .map((member) => source.before(member).replaceAll(/\/\/.*|override|\s/g, ''));
    const sameness = JSON.stringify(texts);
    groups.set(sameness, [...(groups.get(sameness) ?? []), guard]);
  }
  for (const [first, ...others] of groups.values()) {
    if (first === undefined || others.length === 0) continue;
    const kept: Guard = { ...first, isForAll: true };
    guards.set(kept.name, kept);
    for (const other of others) guards.set(other.name, { ...other, outcome: 'dropped', sameAs: kept });
  }
}

function baseOf(source: Source, node: TS.ClassDeclaration): string | undefined {
  const clause = node.heritageClauses?.find(({ token }) => token === source.ts.SyntaxKind.ExtendsKeyword);
  const [type] = clause?.types ?? [];
  return type === undefined ? undefined : source.before(type.expression);
}

function analysed(source: Source, node: TS.ClassDeclaration): Guard {
  const member = (name: string) => source.method(node, name);
  const refusing = member('throwThrottlingException') ?? member('getErrorMessage');
  const refusal = refusalOf(source, refusing);
  const isShared = sharing(source, member('generateKey'));
  const exempts = member('canActivate') !== undefined || member('shouldSkip') !== undefined;
  const reason = reasonToStay(source, node, refusal !== undefined, isShared !== undefined);
  const properties = node.members.filter((one) => source.ts.isPropertyDeclaration(one));
  const initializer = properties.find(({ name }) => source.before(name) === 'errorMessage')?.initializer;
  const property = source.literal(initializer) === undefined ? undefined : initializer;
  const converted = member('getTracker') !== undefined || exempts ? 'key' : 'dropped';
  return {
    name: node.name!.text,
    source,
    node,
    outcome: reason === undefined ? converted : 'left',
    reason,
    message: refusal?.message ?? (property && source.before(property)),
    overridesMessage: refusing !== undefined && refusal?.body === undefined,
    body: refusal?.body,
    exempts,
    isShared: isShared === true,
  };
}

/** The reason why a guard can't be converted; `undefined` if it can. */
function reasonToStay(
  source: Source,
  node: TS.ClassDeclaration,
  isRefusalKnown: boolean,
  isSharingKnown: boolean,
): string | undefined {
  const names = node.members.map((one) => (one.name === undefined ? '' : source.before(one.name)));
  const overrides = names.filter((name) =>
    /^(?:handleRequest|setResponseHeader|onModuleInit|headerPrefix)$/.test(name),
  );
  if (overrides.includes('handleRequest'))
    return "it overrides handleRequest(): use 'cost', 'key' and 'skip' of a limit, or @RateLimit with a function that returns a limit";
  if (overrides.length > 0)
    return `it overrides ${overrides.join(', ')}: use the option 'headers' of RateLimitModule.forRoot`;
  if (!isRefusalKnown)
    return "its throwThrottlingException() is more than a text: use the option 'answer', or a filter with @Catch(RateLimitExceededException)";
  const activate = source.method(node, 'canActivate');
  if (activate !== undefined && !isExemption(source, activate))
    return "its canActivate() does more than to let some requests pass: use the option 'skip', and a guard of its own for the rest";
  if (!isSharingKnown)
    return "its generateKey() makes keys of its own: use 'key' for who is counted, and 'perRoute' for what shares a counter";
  const kept = node.members.filter(
    (one, index) => !source.ts.isConstructorDeclaration(one) && !REPLACED.includes(names[index]!),
  );
  const [used] = kept.flatMap((one) => OF_THE_BASE.exec(source.before(one)) ?? []);
  return used && `it uses ${used} of ThrottlerGuard: use options of limits`;
}

/** The message or the body that a method throws, or the message that it returns; `undefined` if it isn't a literal. */
function refusalOf(source: Source, method: TS.MethodDeclaration | undefined) {
  const { ts } = source;
  if (method?.body === undefined) return {};
  const [statement, ...more] = method.body.statements;
  if (statement === undefined || more.length > 0) return undefined;
  if (ts.isReturnStatement(statement) && statement.expression !== undefined) {
    const inner = source.bare(statement.expression);
    return source.literal(inner) === undefined ? undefined : { message: source.before(inner) };
  }
  if (!ts.isThrowStatement(statement) || !ts.isNewExpression(statement.expression)) return undefined;
  const { expression, arguments: given = [] } = statement.expression;
  const [what, status] = given;
  const name = source.before(expression);
  const is429 =
    status === undefined
      ? name === 'ThrottlerException'
      : /^(?:429|HttpStatus\.TOO_MANY_REQUESTS)$/.test(source.before(status));
  if (!/^(?:HttpException|ThrottlerException)$/.test(name) || !is429) return undefined;
  if (what === undefined) return {};
  if (source.literal(what) !== undefined) return { message: source.before(what) };
  const object = source.bare(what);
  if (!ts.isObjectLiteralExpression(object) || name !== 'HttpException') return undefined;
  const isPlain = object.properties.every((property) => {
    const value = source.valueOf(property);
    return ts.isPropertyAssignment(property) && value !== undefined && isPlainValue(source, value);
  });
  return isPlain ? { body: source.before(object).replaceAll('HttpStatus.TOO_MANY_REQUESTS', '429') } : undefined;
}

function isPlainValue(source: Source, node: TS.Expression): boolean {
  const { ts } = source;
  return (
    source.literal(node) !== undefined ||
    ts.isNumericLiteral(node) ||
    node.kind === ts.SyntaxKind.TrueKeyword ||
    node.kind === ts.SyntaxKind.FalseKeyword ||
    source.before(node) === 'HttpStatus.TOO_MANY_REQUESTS'
  );
}

/** Returns true if `canActivate` returns only `true` and the result of the base class. */
function isExemption(source: Source, method: TS.MethodDeclaration): boolean {
  const returned = source.returned(method);
  const supers = superCalls(source, method, 'canActivate');
  const isPassing = (value: TS.Expression) => /^(?:true|Promise\.resolve\(true\))$/.test(source.before(value));
  return (
    supers.every((call) => returned.some((value) => inAwait(source, value) === call)) &&
    returned.every((value) => isPassing(value) || supers.includes(inAwait(source, value) as TS.CallExpression))
  );
}

function inAwait(source: Source, value: TS.Expression): TS.Expression {
  const bare = source.bare(value);
  return source.ts.isAwaitExpression(bare) ? source.bare(bare.expression) : bare;
}

export function superCalls(source: Source, under: TS.Node, name: string): TS.CallExpression[] {
  const found: TS.CallExpression[] = [];
  source.visit(under, (node) => {
    if (source.ts.isCallExpression(node) && source.before(node.expression) === `super.${name}`) found.push(node);
  });
  return found;
}

/** Returns true if keys are the same for all routes; `undefined` if that can't be determined. */
export function sharing(source: Source, fn: TS.SignatureDeclaration | undefined): boolean | undefined {
  if (fn === undefined) return false;
  const [context] = fn.parameters;
  const body = (fn as TS.FunctionLikeDeclaration).body;
  if (context === undefined || body === undefined) return undefined;
  const text = source.before(body);
  if (/\bsuper\./.test(text)) return undefined;
  if (!source.ts.isIdentifier(context.name)) return undefined;
  const uses = source.usesOf(context.name.text, body);
  const suffix = fn.parameters[1]?.name;
  const hasSuffix =
    suffix !== undefined && source.ts.isIdentifier(suffix) && source.usesOf(suffix.text, body).length > 0;
  if (!hasSuffix) return undefined;
  if (uses.length === 0) return true;
  const methods = uses.map(({ parent }) => (source.ts.isPropertyAccessExpression(parent) ? parent.name.text : ''));
  const isRoute = methods.every((name) => /^get(?:Class|Handler)$/.test(name));
  return isRoute && methods.includes('getClass') && methods.includes('getHandler') ? false : undefined;
}
