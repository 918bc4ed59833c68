import type { CallRun } from '../../nest/request/call-run.js';
import type { LimitedRequest } from '../../nest/request/limited-request.js';
import type { RequestedCost } from './cost/query-costs.js';
import type { CostReport } from './cost/cost-report.js';
import type { OperationSource } from './operation-source.js';

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
