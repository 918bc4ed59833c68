import type { HandlerClass } from '../../app/rules/namespaces.js';
import { bindsOwnGuard, type GuardCheck } from '../../app/rules/guard-check.js';
import type { HandlerClasses } from '../../app/rules/handler-classes.js';
import { rootFieldOf } from '../../app/rules/route-names.js';

/** The method that resolves a field. */
export interface ResolvedField {
  readonly type: HandlerClass;
  readonly handler: Function;
}

/** Finds the methods that resolve queries, mutations and subscriptions and that the guard covers. */
export class ResolvedFields {
  private known: ReadonlyMap<string, ResolvedField> | undefined;

  constructor(
    private readonly classes: HandlerClasses,
    private readonly guards: GuardCheck,
  ) {}

  /** The method of a field of `Query`, `Mutation` or `Subscription`; `undefined` if there is none, or if the guard doesn't cover it. */
  of(operation: string, field: string): ResolvedField | undefined {
    return (this.known ??= this.all()).get(`${operation} ${field}`);
  }

  private all(): Map<string, ResolvedField> {
    const all = new Map<string, ResolvedField>();
    const { isEverywhere } = this.guards;
    for (const type of this.classes.known()) {
      for (const [method, handler] of this.classes.handlers(type)) {
        const field = rootFieldOf(type, handler, method);
        if (field === undefined) continue;
        if (!isEverywhere && !bindsOwnGuard(type) && !bindsOwnGuard(handler)) continue;
        all.set(`${field.operation} ${field.name}`, { type, handler: handler as Function });
      }
    }
    return all;
  }
}
