import type { CallRun } from '../../nest/request/call-run.js';
import type { LimitedRequest } from '../../nest/request/limited-request.js';
import type { RequestedCost } from './cost/query-costs.js';
import type { CostReport } from './cost/cost-report.js';
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

/** One operation on its way through its limits. */
export class Operation {
  /** Its queries, mutations or subscription, by their names in the response. */
  readonly fields = new Map<string, LimitedRequest>();
  /** Those that have begun. */
  readonly begun = new Set<LimitedRequest>();
  /** Resolves once everything that can be decided before the guards run is decided; rejects with the refusal. */
  decision: Promise<void> | undefined;
  /** Whether it has resolved. */
  isDecided = false;
  /** Whether the user was known before any guard ran, so that everything was decided at once. */
  knowsUser = false;
  /** What it costs, if that counts. */
  cost: RequestedCost | undefined;
  /** Whether a check refused it that counts its cost: then none of its fields runs. */
  isRefused = false;
  /** What its client gets to know of that. */
  report: CostReport | undefined;
  /** Whether it was answered. Some of its fields may still be at work. */
  isEnded = false;
  /** The same for fields that had to wait until guards have run, by the decision that they share. */
  readonly later = new Map<LimitedRequest, Promise<void>>();
  /** The same for its cost, if that has to know the user. */
  laterCost: Promise<void> | undefined;
  private holders: readonly LimitedRequest[] = [];
  private readonly runs: CallRun[] = [];

  constructor(
    readonly source: OperationSource,
    /** Stands for the operation itself, and has what it asks besides its fields. */
    readonly whole: LimitedRequest,
  ) {}

  /** Whether the call of a field of its root has begun. */
  hasBegun(key: string | number): boolean {
    const request = this.fields.get(String(key));
    return request !== undefined && this.begun.has(request);
  }

  /** Notes that the call of a field runs: units that several fields hold together belong to the first of them. */
  follow(run: CallRun): void {
    this.runs.push(run);
    for (const { completion } of this.holders) completion?.follow(run);
  }

  /** Notes which fields hold units, for themselves and for others. */
  held(): void {
    this.holders = [...this.fields.values()].filter(({ leases }) => leases.length > 0);
    for (const { completion } of this.holders) for (const run of this.runs) completion?.follow(run);
  }
}
