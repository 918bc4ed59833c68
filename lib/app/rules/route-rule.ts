import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { Rule } from './rule.js';

/** Separates the namespace of a class from that of one of its routes. */
export const ROUTE_OF_CLASS = '@route ';

/** A route's own version of a rule that applies to all routes, or to all routes of a class. It follows changes of the rate. */
export class RouteRule extends Rule {
  private source: CompiledLimit;
  /** The route's limits for keys with overrides, by the limits that these keys have on all routes. */
  private readonly ownLimits = new WeakMap<CompiledLimit, CompiledLimit>();
  private readonly namespace: string;

  /** `name`: the unique name of the route. */
  constructor(
    override readonly ofAll: Rule,
    name: string,
  ) {
    const namespace = `${ofAll.configured.namespace} ${name}`;
    super(ofAll.configured.inNamespace(namespace), ofAll.settings);
    this.namespace = namespace;
    this.source = ofAll.configured;
  }

  override get ancestors(): readonly Rule[] {
    return this.ofAll.ancestors;
  }

  override get limit(): CompiledLimit {
    const { limit } = this.ofAll;
    if (limit !== this.source) {
      this.source = limit;
      this.decideBy(limit.inNamespace(this.namespace));
    }
    return super.limit;
  }

  override limitFor(identity: string): CompiledLimit {
    const limit = this.ofAll.limitFor(identity);
    if (limit === this.ofAll.limit) return this.limit;
    let own = this.ownLimits.get(limit);
    if (own === undefined) this.ownLimits.set(limit, (own = limit.inNamespace(this.namespace)));
    return own;
  }
}
