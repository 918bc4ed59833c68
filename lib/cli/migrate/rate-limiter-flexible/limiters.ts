import type TS from 'typescript';
import { isIn, type Source } from '../source.js';
import { constantOf, durationOf, numberOf, quoted } from '../values.js';

export const FLEXIBLE = /^rate-limiter-flexible$/;

/** The store class that this package also has. */
const IN_PROCESS = 'RateLimiterMemory';
const ON_REDIS = 'RateLimiterRedis';

/** Options that this package doesn't need: the module has the store, and rejections are always remembered. */
const BUILT_IN = new Set([
  'storeClient',
  'keyPrefix',
  'inMemoryBlockOnConsumed',
  'inMemoryBlockDuration',
  'inmemoryBlockOnConsumed',
  'inmemoryBlockDuration',
  'insuranceLimiter',
  'useRedisPackage',
  'useRedis3AndLowerPackage',
  'rejectIfRedisNotReady',
]);

/** The reasons why other classes are left unchanged, and the alternatives. */
const OTHERS: Readonly<Record<string, string>> = {
  RateLimiterCluster: 'use the limits of the module, on Redis',
  RateLimiterUnion: 'use limiters.check([{ limit, key }, …]), which takes from all or from none',
  RateLimiterQueue: "use limiter.acquire(key, { timeout: '5s' })",
  BurstyRateLimiter: "use algo: 'token-bucket' with burst",
  RLWrapperBlackAndWhite: "use the option 'lists' of the module",
  RLWrapperTimeouts: "use the option 'timeout' of the module",
};

/** A limiter that a class creates. */
export interface FoundLimiter {
  readonly source: Source;
  readonly node: TS.NewExpression;
  readonly owner: TS.ClassDeclaration;
  /** The property that contains it. */
  readonly property: string;
  /** Its assignment in a constructor; `undefined` for an initializer of the property. */
  readonly assignment: TS.BinaryExpression | undefined;
  readonly isOnRedis: boolean;
}

/** The limiter of a class, or the reason why it can't be converted. */
export function limiterOf(source: Source, node: TS.NewExpression, imported: string): FoundLimiter | string {
  const { ts } = source;
  if (imported !== IN_PROCESS && imported !== ON_REDIS) {
    return OTHERS[imported] ?? "it has no counterpart: implement a Store, and give it to the module's option 'store'";
  }
  const { parent } = node;
  const owner = ts.findAncestor(node, ts.isClassDeclaration);
  const place =
    ts.isPropertyDeclaration(parent) && parent.initializer === node
      ? { property: source.nameOf(parent.name), assignment: undefined }
      : ts.isBinaryExpression(parent) && parent.right === node
        ? { property: assigned(source, parent), assignment: parent }
        : undefined;
  const isStatic = ts.isPropertyDeclaration(parent) && source.before(parent).includes('static ');
  if (owner === undefined || place?.property === undefined || isStatic) {
    return `it isn't a property of a class: inject LimiterService, and use limiters.for(${definitionOf(source, node, 'limit', '') ?? '…'})`;
  }
  const decorators = ts.getDecorators(owner) ?? [];
  if (decorators.length === 0)
    return 'its class has no decorator of Nest, so nothing can be injected into it: make it @Injectable()';
  const isDerived = owner.heritageClauses?.some(({ token }) => token === ts.SyntaxKind.ExtendsKeyword) === true;
  const hasConstructor = owner.members.some((member) => ts.isConstructorDeclaration(member));
  if (isDerived && !hasConstructor) return 'its class extends another: hand LimiterService over in a constructor';
  return {
    source,
    node,
    owner,
    property: place.property,
    assignment: place.assignment,
    isOnRedis: imported === ON_REDIS,
  };
}

/** The property of `this` that an assignment at the top level of a constructor sets. */
function assigned(source: Source, { left, parent }: TS.BinaryExpression): string | undefined {
  const { ts } = source;
  const isThis = ts.isPropertyAccessExpression(left) && left.expression.kind === ts.SyntaxKind.ThisKeyword;
  if (!isThis || !ts.isExpressionStatement(parent)) return undefined;
  return ts.isConstructorDeclaration(parent.parent.parent) ? left.name.text : undefined;
}

/** The definition of one of their limiters; `undefined` if its options have no equivalent. */
export function definitionOf(source: Source, node: TS.NewExpression, name: string, more: string): string | undefined {
  const { ts } = source;
  const [argument] = node.arguments ?? [];
  if (argument === undefined) return undefined;
  let given = source.bare(argument);
  let access = '';
  if (ts.isIdentifier(given)) {
    access = given.text;
    const declared = source.declared(given.text);
    if (declared === undefined || ts.isFunctionDeclaration(declared)) return undefined;
    given = source.bare(declared);
  }
  if (!ts.isObjectLiteralExpression(given)) return undefined;
  const values = new Map<string, TS.Expression>();
  for (const property of given.properties) {
    const key = source.nameOf(property.name);
    const value = source.valueOf(property);
    if (key === undefined || value === undefined) return undefined;
    values.set(key, value);
  }
  const main = ['points', 'duration', 'blockDuration'];
  if ([...values.keys()].some((key) => !main.includes(key) && !BUILT_IN.has(key))) return undefined;
  const [points, duration, block] = main.map((key) => values.get(key));
  if (points === undefined || duration === undefined || constantOf(source, duration) === 0) return undefined;
  const number = (key: string, value: TS.Expression): string =>
    access === '' ? numberOf(source, value) : `${access}.${key}`;
  const time = (key: string, value: TS.Expression): string =>
    access === '' ? durationOf(source, value, 1000) : `${access}.${key} * 1000`;
  const prefix = source.literal(values.get('keyPrefix'))?.replaceAll(/[^ -~]/g, '-');
  const entries = [
    `name: ${quoted(source, prefix === undefined || prefix === '' ? name : prefix)}`,
    `algo: ${quoted(source, 'fixed-window')}`,
    `rate: ${number('points', points)}`,
    `interval: ${time('duration', duration)}`,
  ];
  if (block !== undefined && constantOf(source, block) !== 0) entries.push(`blockFor: ${time('blockDuration', block)}`);
  if (more !== '') entries.push(more);
  return `{ ${entries.join(', ')} }`;
}

const METHODS: Readonly<Record<string, string>> = {
  consume: 'consume',
  get: 'peek',
  delete: 'reset',
  penalty: 'penalize',
  reward: 'refund',
  block: 'block',
};

/** The property of a decision that corresponds to one of their results, for rejections and for other results. */
function fieldOf(name: string, value: string, isRefusal: boolean): string | undefined {
  switch (name) {
    case 'msBeforeNext':
      return isRefusal ? `${value}.retryAfterMs` : `${value}.resetAfterMs`;
    case 'remainingPoints':
      return `${value}.remaining`;
    case 'consumedPoints':
      return `(${value}.quota - ${value}.remaining)`;
    default:
      return undefined;
  }
}

/** The calls of a limiter; `undefined` if it is used in any other way. */
export function callsOf(found: FoundLimiter): TS.CallExpression[] | undefined {
  const { source, owner, property, assignment } = found;
  const { ts } = source;
  const calls: TS.CallExpression[] = [];
  let isOther = false;
  source.visit(source.ast, (node) => {
    if (!ts.isPropertyAccessExpression(node) || node.name.text !== property) return;
    if (node === assignment?.left) return;
    const isOwn = node.expression.kind === ts.SyntaxKind.ThisKeyword && isIn(node, owner);
    if (!isOwn) return;
    const method = node.parent;
    const call = method.parent;
    const isKnown =
      ts.isPropertyAccessExpression(method) &&
      method.expression === node &&
      Object.hasOwn(METHODS, method.name.text) &&
      ts.isCallExpression(call) &&
      call.expression === method &&
      call.arguments.length > 0 &&
      (method.name.text !== 'block' || isAwaitedStatement(source, call));
    if (isKnown) calls.push(call);
    else isOther = true;
  });
  return isOther ? undefined : calls;
}

function isAwaitedStatement(source: Source, call: TS.CallExpression): boolean {
  const { ts } = source;
  return (
    ts.isAwaitExpression(call.parent) && ts.isExpressionStatement(call.parent.parent) && call.arguments.length === 2
  );
}

export function convertCall(source: Source, call: TS.CallExpression): void {
  const { ts } = source;
  const method = call.expression as TS.PropertyAccessExpression;
  const limiter = source.before(method.expression);
  const given = call.arguments.map((argument) => source.now(argument));
  const [key, amount] = given;
  switch (method.name.text) {
    case 'consume':
      if (convertTry(source, call)) return;
      source.rewrite(call, `${consumeOrThrow(source)}(${[limiter, ...given].join(', ')})`);
      return;
    case 'block': {
      const time = durationOf(source, call.arguments[1]!, 1000);
      source.rewrite(call.parent, `await ${limiter}.reset(${key}); await ${limiter}.block(${key}, ${time})`);
      return;
    }
    case 'penalty':
    case 'reward':
      source.rewrite(call, `${limiter}.${METHODS[method.name.text]}(${key}, ${amount ?? '1'})`);
      return;
    default:
      source.rewrite(method.name, METHODS[method.name.text]!);
      if (ts.isCallExpression(call) && call.arguments.length > 1)
        source.remove(call.arguments, new Set(call.arguments.slice(1)));
  }
}

/** Functions in which the constant `decision` is declared already. */
const withDecision = new WeakSet<TS.Node>();

/** Converts `try { await consume } catch { … }` to a condition. Returns true if it is simple enough. */
function convertTry(source: Source, call: TS.CallExpression): boolean {
  const { ts } = source;
  const statement = call.parent.parent;
  const block = statement.parent;
  if (!ts.isAwaitExpression(call.parent) || !ts.isExpressionStatement(statement) || !ts.isBlock(block)) return false;
  const attempt = block.parent;
  if (!ts.isTryStatement(attempt) || attempt.tryBlock !== block || block.statements.length !== 1) return false;
  const { catchClause, finallyBlock } = attempt;
  const scope = functionOf(source, attempt);
  if (catchClause === undefined || finallyBlock !== undefined) return false;
  if (withDecision.has(scope) || /\bdecision\b/.test(source.before(scope))) return false;
  const name = catchClause.variableDeclaration?.name;
  if (name !== undefined) {
    if (!ts.isIdentifier(name)) return false;
    const uses = source.usesOf(name.text, catchClause.block);
    const accesses = uses.map((use) => accessOf(source, use));
    if (accesses.some((access) => access === undefined || fieldOf(access.name.text, 'decision', true) === undefined))
      return false;
    for (const access of accesses) source.rewrite(access!, fieldOf(access!.name.text, 'decision', true)!);
  }
  const indent = /[ \t]*$/.exec(source.text.slice(0, attempt.getStart(source.ast)))![0];
  const text = `const decision = ${source.now(call.parent)};\n${indent}if (!decision.allowed) ${source.now(catchClause.block)}`;
  withDecision.add(scope);
  source.rewrite(attempt, text);
  return true;
}

/** The access to a property of a value, also through casts. */
function accessOf(source: Source, use: TS.Node): TS.PropertyAccessExpression | undefined {
  const { ts } = source;
  let at = use.parent;
  while (ts.isAsExpression(at) || ts.isParenthesizedExpression(at) || ts.isNonNullExpression(at)) at = at.parent;
  return ts.isPropertyAccessExpression(at) ? at : undefined;
}

function functionOf(source: Source, node: TS.Node): TS.Node {
  let at = node.parent;
  while (!source.ts.isFunctionLike(at) && !source.ts.isSourceFile(at)) at = at.parent;
  return at;
}

function consumeOrThrow(source: Source): string {
  source.own('type Limiter');
  source.helpers.set(
    'consumeOrThrow',
    '/** Takes units, or throws the decision that refuses them. */\n' +
      'async function consumeOrThrow(limiter: Limiter, key: string | number, units?: number) {\n' +
      '  const decision = await limiter.consume(String(key), units);\n' +
      '  if (!decision.allowed) throw decision;\n' +
      '  return decision;\n' +
      '}',
  );
  return 'consumeOrThrow';
}

/** Converts the reads of results in a file, and the names of their types. */
export function convertResults(source: Source, results: string | undefined): void {
  const { ts } = source;
  source.visit(source.ast, (node) => {
    if (ts.isPropertyAccessExpression(node)) {
      const text = fieldOf(node.name.text, source.now(node.expression), isRefusal(source, node));
      if (text !== undefined && source.keeps(node.name)) source.rewrite(node, text);
    }
    if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent)) convertBinding(source, node);
    if (results === undefined || !ts.isIdentifier(node) || node.text !== results || ts.isImportSpecifier(node.parent))
      return;
    if (!source.keeps(node)) return;
    const { parent } = node;
    if (ts.isBinaryExpression(parent) && parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword) {
      source.own('type Decision');
      source.helpers.set(
        'isRefusal',
        '/** True if an error is a decision that rejects. */\n' +
          'function isRefusal(error: unknown): error is Decision {\n' +
          "  return typeof error === 'object' && error !== null && 'retryAfterMs' in error;\n" +
          '}',
      );
      source.rewrite(parent, `isRefusal(${source.now(parent.left)})`);
    } else {
      source.rewrite(node, source.own('type Decision'));
    }
  });
}

/** Converts `{ remainingPoints }` of a result. */
function convertBinding(source: Source, node: TS.BindingElement): void {
  const name = source.before(node.propertyName ?? node.name);
  const [, field] = fieldOf(name, '', isRefusal(source, node))?.split('.') ?? [];
  const bound = source.before(node.name);
  if (field === undefined) return;
  if (name === 'consumedPoints') source.rewrite(node, `${bound} /* TODO(nestjs-sluice): quota - remaining */`);
  else source.rewrite(node, `${field}: ${bound}`);
}

/** Returns true if a node is inside the handling of rejections. */
function isRefusal(source: Source, node: TS.Node): boolean {
  const { ts } = source;
  for (let at = node.parent; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isCatchClause(at)) return true;
    const call = at.parent;
    if (ts.isFunctionLike(at) && ts.isCallExpression(call) && ts.isPropertyAccessExpression(call.expression)) {
      if (call.expression.name.text === 'catch') return true;
    }
  }
  return false;
}
