import type { CallRun } from '../../nest/request/call-run.js';
import type { LimitedRequest } from '../../nest/request/limited-request.js';
import type { CostReport, RequestedCost } from './cost/query-costs.js';
import type { OperationSource } from './operation-source.js';

/** The property of a context that holds its operations. It is neither copied nor displayed with it. */
const KEPT = Symbol('nestjs-sluice:operations');

/** The operations of one context, usually one. */
interface Kept {
  first: Operation;
  /** The operations of other documents, in case the app shares a context between several. */
  others: WeakMap<object, Operation> | undefined;
}

/** The operations of contexts that can't get new properties. */
const others = new WeakMap<object, Kept>();

/**
 * Returns the operation that was kept for a document. Contexts hold their operations themselves, because a map with short-lived keys makes
 * each garbage collection more expensive. A context that inherits from another one has its own.
 */
export function knownOperation({ context, operation }: OperationSource): Operation | undefined {
  const kept = keptBy(context);
  if (kept === undefined) return undefined;
  return kept.first.source.operation === operation ? kept.first : kept.others?.get(operation);
}

/** Keeps an operation. It replaces one of the same document and context. */
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

/** One operation on its way through its limits. */
export class Operation {
  /** Its queries, mutations or subscription, by their names in the response. */
  readonly fields = new Map<string, LimitedRequest>();
  readonly begun = new Set<LimitedRequest>();
  /** Resolves once everything that can be decided before the guards run is decided; rejects if a limit rejects. */
  decision: Promise<void> | undefined;
  isDecided = false;
  /** True if the user was known before any guard ran, so that all limits were checked at once. */
  knowsUser = false;
  /** The cost of the operation, if cost limits apply. */
  cost: RequestedCost | undefined;
  /** True if a check that counts the cost has rejected the operation. None of its fields run then. */
  isRefused = false;
  report: CostReport | undefined;
  /** True once the response was sent. Some fields may still be running. */
  isEnded = false;
  /** Fields that had to wait for guards, each with the decision that it shares. */
  readonly later = new Map<LimitedRequest, Promise<void>>();
  /** The decision about the cost, if that has to know the user. */
  laterCost: Promise<void> | undefined;
  private holders: readonly LimitedRequest[] = [];
  private readonly runs: CallRun[] = [];

  constructor(
    readonly source: OperationSource,
    /** Represents the operation itself, with the limits that apply in addition to those of its fields. */
    readonly whole: LimitedRequest,
  ) {}

  hasBegun(key: string | number): boolean {
    const request = this.fields.get(String(key));
    return request !== undefined && this.begun.has(request);
  }

  /** Follows the call of a field to its end. Units that several fields hold together belong to the first of them. */
  follow(run: CallRun): void {
    this.runs.push(run);
    for (const { completion } of this.holders) completion?.follow(run);
  }

  /** Records which fields hold units, for themselves and for others. */
  held(): void {
    this.holders = [...this.fields.values()].filter(({ leases }) => leases.length > 0);
    for (const { completion } of this.holders) for (const run of this.runs) completion?.follow(run);
  }
}
