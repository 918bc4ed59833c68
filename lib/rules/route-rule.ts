import type { CompiledLimit } from '../limits/compiled-limit.js';
import { Rule } from './rule.js';

/** What stands between the namespace of a class and that of a route of it. */
export const ROUTE_OF_CLASS = '@route ';

/** A rule of all routes, or of those of a class, as one of them meets it: it follows when the rate changes. */
export class RouteRule extends Rule {
  private source: CompiledLimit;
  /** Those of some identities, by what they are on all routes. */
  private readonly ownLimits = new WeakMap<CompiledLimit, CompiledLimit>();
  private readonly namespace: string;

  /** `name`: that of the route, which no other route has. */
  constructor(
    override readonly ofAll: Rule,
    name: string,
  ) {
    const namespace = `${ofAll.configured.namespace} ${name}`;
    super(ofAll.configured.within(namespace), ofAll.settings);
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
      this.decideBy(limit.within(this.namespace));
    }
    return super.limit;
  }

  override limitFor(identity: string): CompiledLimit {
    const limit = this.ofAll.limitFor(identity);
    if (limit === this.ofAll.limit) return this.limit;
    let own = this.ownLimits.get(limit);
    if (own === undefined) this.ownLimits.set(limit, (own = limit.within(this.namespace)));
    return own;
  }
}
