import type TS from 'typescript';
import type { Source } from '../source.js';
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
  const owner = classOf(source, node);
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

function classOf(source: Source, node: TS.Node): TS.ClassDeclaration | undefined {
  for (let at: TS.Node | undefined = node; at !== undefined; at = at.parent) {
    if (source.ts.isClassDeclaration(at)) return at;
  }
  return undefined;
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
    const key = property.name === undefined ? undefined : source.nameOf(property.name);
    const value = source.valueOf(property);
    if (key === undefined || value === undefined) return undefined;
    values.set(key, value);
  }
  const known = new Set([...BUILT_IN, 'points', 'duration', 'blockDuration']);
  if ([...values.keys()].some((key) => !known.has(key))) return undefined;
  const [points, duration, block] = ['points', 'duration', 'blockDuration'].map((key) => values.get(key));
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
