import type { ExecutionContext } from '@nestjs/common';
import type { ExactLimit, LimitDefinition } from '../../config/limit-definition.js';
import type { RateFunction } from '../../config/limits-by-request.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { byRequestMessages } from '../../../engine/errors/messages/app-code.js';
import { messages } from '../../../engine/errors/messages/general.js';
import { isCallable } from '../../../engine/util/objects.js';
import { RecentMap } from '../../../engine/util/bounded-maps.js';
import type { Declaration } from '../declaration.js';
import type { Rule } from '../rule.js';
import type { Selection } from './limit-source.js';

/** A limit whose rate is a function, regardless of its other options. */
export interface ByRate {
  readonly rate: RateFunction;
  readonly phase?: unknown;
}

/** Sample rates. Options such as `prefetch` and `ceiling` depend on the rate, and have to be valid for one of these. */
const EXAMPLES = [1, 1_000_000];

/** A limit whose rate is found per request. Its other options are checked at start-up. */
export class RateSelection implements Selection {
  readonly example: Rule;
  private readonly rate: RateFunction;
  private readonly others: Omit<ExactLimit, 'rate'>;
  /** The rules of recent rates, by route. */
  private readonly known = new Map<string, RecentMap<readonly Rule[]>>();

  constructor(
    limit: ByRate,
    private readonly declaration: Declaration,
    private readonly compile: (limit: LimitDefinition, declaration: Declaration) => Rule,
  ) {
    const { rate, ...others } = limit;
    this.rate = rate;
    this.others = others as Omit<ExactLimit, 'rate'>;
    if (!isCallable(rate)) {
      throw new RateLimitConfigError(
        messages.wrongOption(declaration.location, 'rate', rate, byRequestMessages.wrongRateSource),
      );
    }
    if (limit.phase === 'middleware') {
      throw new RateLimitConfigError(
        messages.wrongOption(declaration.location, 'phase', limit.phase, byRequestMessages.early),
      );
    }
    this.example = this.firstOf(EXAMPLES);
  }

  find(context: ExecutionContext): number | null | Promise<number | null> {
    return this.rate(context);
  }

  read(rate: unknown, location: string, route = ''): readonly Rule[] {
    if (rate === null) return NONE;
    if (typeof rate !== 'number') {
      throw new RateLimitConfigError(messages.wrongOption(location, 'rate', rate, byRequestMessages.wrongRate));
    }
    let ofRoute = this.known.get(route);
    if (ofRoute === undefined) this.known.set(route, (ofRoute = new RecentMap()));
    return ofRoute.of(String(rate), () => [this.ruleOf(rate, location, route)])!;
  }

  private ruleOf(rate: number, location: string, route = ''): Rule {
    const { namespace } = this.declaration;
    const definition = { ...this.others, rate } as LimitDefinition;
    const own = route === '' ? namespace : `${namespace} ${route}`;
    return this.compile(definition, { ...this.declaration, location, namespace: own, rate: this.rate });
  }

  private firstOf(rates: readonly number[]): Rule {
    const [rate, ...others] = rates;
    try {
      return this.ruleOf(rate!, this.declaration.location);
    } catch (error) {
      if (others.length === 0) throw error;
      return this.firstOf(others);
    }
  }
}

const NONE: readonly Rule[] = [];
