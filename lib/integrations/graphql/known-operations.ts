import type { Operation } from './operation.js';
import type { OperationSource } from './operation-source.js';

/** The property of a context that holds its operations. It is neither copied nor displayed with it. */
const KEPT = Symbol('nestjs-sluice:operations');

/** The operations of one context: mostly one. */
interface Kept {
  first: Operation;
  /** The operations of other documents, if the app lets several share a context. */
  others: WeakMap<object, Operation> | undefined;
}

/** The operations of contexts that cannot be extended. */
const others = new WeakMap<object, Kept>();

/**
 * The operation that was kept last. A map with short-lived keys makes each garbage collection more expensive, so contexts hold their
 * operations themselves. One that inherits from another context has its own.
 */
export function knownOperation({ context, operation }: OperationSource): Operation | undefined {
  const kept = keptBy(context);
  if (kept === undefined) return undefined;
  return kept.first.source.operation === operation ? kept.first : kept.others?.get(operation);
}

/** Keeps an operation, in place of one of the same document and context. */
export function keepOperation(operation: Operation): void {
  const { context, operation: node } = operation.source;
  const kept = keptBy(context);
  if (kept !== undefined) {
    if (kept.first.source.operation === node) kept.first = operation;
    else (kept.others ??= new WeakMap<object, Operation>()).set(node, operation);
    return;
  }
  const own: Kept = { first: operation, others: undefined };
  if (Object.isExtensible(context)) Object.defineProperty(context, KEPT, { value: own });
  else others.set(context, own);
}

function keptBy(context: object): Kept | undefined {
  if (Object.hasOwn(context, KEPT)) return (context as { [KEPT]?: Kept })[KEPT];
  return Object.isExtensible(context) ? undefined : others.get(context);
}
