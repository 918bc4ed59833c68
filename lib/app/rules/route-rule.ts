import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { Rule } from './rule.js';

/** Separates the namespace of a class from that of one of its routes. */
export const ROUTE_OF_CLASS = '@route ';

/** The version for one route of a rule for all routes, or all of a class. It follows changes of the rate. */
export class RouteRule extends Rule {
  private source: CompiledLimit;
  /** The limits of some identities, by the limits that these have on all routes. */
  private readonly ownLimits = new WeakMap<CompiledLimit, CompiledLimit>();
  private readonly namespace: string;

  /** `name`: that of the route, which no other route has. */
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
