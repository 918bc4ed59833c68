import { nameOfKey } from '../app/key-resolvers/index.js';
import type { Limiter } from '../app/limiter/limiter.js';
import type { Overrides } from '../app/overrides/overrides.js';
import { declaredRules } from '../app/rules/declared-limits.js';
import type { HandlerClasses } from '../app/rules/handler-classes.js';
import type { LimitRegistry } from '../app/rules/limit-registry.js';
import { ROUTE_OF_CLASS } from '../engine/limits/limit-settings.js';
import type { RouteRulesRegistry } from '../app/rules/route-rules-registry.js';
import type { Rule } from '../app/rules/rule.js';
import { asksForAnchor, readAnchor } from '../engine/algorithms/anchor.js';
import type { AlgorithmOptions } from '../engine/algorithms/index.js';
import { consoleMessages } from '../engine/errors/messages/console.js';
import type { CompiledLimit } from '../engine/limits/compiled-limit.js';
import { rateText } from '../nest/explain/format.js';
import { shownUnitsOf } from '../storage/features/index.js';
import type { LimitInfo, PlanInfo } from './api.js';
import type { Fields } from './fields.js';
import { ConsoleProblem } from './problem.js';
import { rateOf } from './telemetry/demand-sampler.js';

/** Options that only plans have. */
interface PlanOptions {
  readonly anchor?: unknown;
  readonly rollover?: number | undefined;
  readonly credits?: boolean | undefined;
}

/** The key of the tenants that share a limit, if there are any. */
function sharedBy({ settings: { trait } }: Rule): string | undefined {
  if (trait?.option !== 'share') return undefined;
  const { by } = trait;
  return nameOfKey(typeof by === 'function' ? by : (by as { given: unknown }).given);
}

function planOf(options: AlgorithmOptions): PlanInfo | undefined {
  if (options.algo !== 'calendar-window' && options.algo !== 'budget') return undefined;
  const { period, timezone = 'UTC' } = options;
  const { anchor, rollover, credits }: PlanOptions = options;
  const at = asksForAnchor(options) ? 'each' : anchor === undefined ? undefined : readAnchor(anchor, timezone);
  return { period, timezone, anchor: at, rollover, credits: credits || undefined };
}

/** The name of the limit of the console's own routes, which isn't displayed. */
export const OWN_LIMIT = 'rate-limit-console';

/** The namespace of the module's limits, and the prefix of the namespaces of those that count per route. */
const OF_MODULE = /^@module(?: |$)/;

/** A declared limit. */
export interface CatalogEntry {
  /** Its name in the console: the limit's name, followed by its place if other limits have the same name. */
  readonly label: string;
  readonly rule: Rule;
}

/** All limits of the app, under unique names. */
export class LimitCatalog {
  /** The labels of declared limits, by `countersOf`. */
  private readonly declared = new Map<string, string>();
  /** The labels of other limits, which functions and code provide. */
  private readonly given = new Map<string, string>();
  private readonly taken = new Set<string>();
  private readonly declaredLabels = new Set<string>();
  private isRead = false;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly plans: RouteRulesRegistry,
    private readonly classes: HandlerClasses,
    private readonly overrides: Overrides,
    /** For a console outside the app: the limits of its instances. */
    private readonly published: readonly LimitInfo[] = [],
  ) {}

  /** The label of a limit; `undefined` for the console's own. */
  readonly labelOf = ({ name, namespace }: CompiledLimit): string | undefined => {
    if (name === OWN_LIMIT) return undefined;
    if (!this.isRead) this.entries();
    const counters = countersOf(name, namespace);
    return this.declared.get(counters) ?? this.given.get(counters) ?? this.give(name, namespace, counters);
  };

  /** Returns true for the label of a declared limit, and false for one that functions or code provide. */
  readonly isDeclared = (label: string): boolean => this.declaredLabels.has(label);

  /** The limits of the module, the defined limits, and those of all routes. Functions may provide more. */
  entries(): CatalogEntry[] {
    this.isRead = true;
    const entries = new Map<string, CatalogEntry>();
    for (const [each, location] of declaredRules(this.registry, this.plans, this.classes)) {
      const rule = each.ofAll ?? each;
      const place = location.replace('@RateLimit on ', '');
      const { name, namespace } = rule.configured;
      const label = this.declare(name, namespace, place);
      if (!entries.has(label)) entries.set(label, { label, rule });
    }
    return [...entries.values()];
  }

  find(label: string): CatalogEntry | undefined {
    return this.entries().find((entry) => entry.label === label);
  }

  /** Reads the limit of a request, which must be declared in this process. */
  requested(fields: Fields): CatalogEntry | undefined {
    const label = fields.text('limit', 'the name of a limit');
    const entry = this.find(label);
    if (label !== '' && entry === undefined) fields.refuse('limit', consoleMessages.unknownLimit());
    return entry;
  }

  /** Returns true if a limit is displayed. */
  has(label: string): boolean {
    return this.find(label) !== undefined || this.published.some(({ name }) => name === label);
  }

  /** All limits in the page's list. In a console outside the app, limits that are known only by name can't be looked up or changed. */
  infos(): LimitInfo[] {
    const own = new Map(this.entries().map((entry) => [entry.label, this.info(entry)]));
    if (this.published.length === 0) return [...own.values()];
    return this.published.map((info) => {
      const here = own.get(info.name);
      if (here === undefined) return { ...info, addressable: false, changeable: false };
      const addressable = info.addressable && here.addressable;
      return { ...here, key: info.key, addressable, changeable: info.changeable && here.changeable };
    });
  }

  /** Returns true if the rate and the mode of a limit can be changed by name. */
  isChangeable({ rule }: CatalogEntry): boolean {
    return this.overrides.known(rule) !== undefined;
  }

  info(entry: CatalogEntry): LimitInfo {
    const { label, rule } = entry;
    const { limit } = rule;
    const { algorithm, candidate, options } = limit;
    const { above = 0, kept = 0, floor = 0 } = shownUnitsOf(limit);
    const by = sharedBy(rule);
    return {
      name: label,
      algo: options.algo,
      rate: rateText(options),
      quota: limit.quota,
      perSecond: perSecondOf(options),
      key: nameOfKey(rule.settings.key.given),
      mode: limit.mode,
      changeable: this.isChangeable(entry),
      addressable: !rule.perRoute,
      history: algorithm.history !== undefined,
      reservations: algorithm.reservation !== undefined || algorithm.queue !== undefined,
      leases: algorithm.leases !== undefined,
      candidate: candidate === undefined ? null : rateText(candidate.options),
      unit: limit.unit,
      within: rule.configured.parent,
      ...(above > 0 && { own: limit.quota - above }),
      ...(kept > 0 && { kept }),
      ...(by !== undefined && { share: { by, floor } }),
      plan: planOf(options),
    };
  }

  private declare(name: string, namespace: string, place: string): string {
    const counters = countersOf(name, namespace);
    let label = this.declared.get(counters);
    if (label === undefined) {
      // A function may have provided it before.
      label = this.given.get(counters) ?? this.take(name, place);
      this.given.delete(counters);
      this.declared.set(counters, label);
      this.declaredLabels.add(label);
    }
    return label;
  }

  private give(name: string, namespace: string, counters: string): string {
    const label = this.take(name, namespace);
    this.given.set(counters, label);
    if (this.given.size > MOST_GIVEN) {
      const [oldest, its] = this.given.entries().next().value!;
      this.given.delete(oldest);
      this.taken.delete(its);
    }
    return label;
  }

  /** The name alone, unless other counters use it. */
  private take(name: string, place: string): string {
    const label = this.taken.has(name) ? `${name} (${place})` : name;
    this.taken.add(label);
    return label;
  }
}

/** Functions may provide an unlimited number of names. */
const MOST_GIVEN = 10_000;

/** Identifies the counters of a limit. */
function countersOf(name: string, namespace: string): string {
  const place = OF_MODULE.test(namespace) ? '@module' : namespace.split(` ${ROUTE_OF_CLASS}`)[0]!;
  return `${place}\n${name}`;
}

function perSecondOf(options: AlgorithmOptions): number | null {
  const found = rateOf(options);
  return found && found.ms > 0 ? (found.rate * 1000) / found.ms : null;
}

/** The limit of requests from one address to the console of one instance: enough for a page, and too few to do harm. */
export const CONSOLE_LIMIT = {
  name: OWN_LIMIT,
  key: 'ip',
  algo: 'gcra',
  rate: 50,
  interval: '1s',
  burst: 200,
  scope: 'instance',
} as const;

/** The number of limits that a lookup reads at the cost of one request: each takes about 0.2 ms of the process. */
const LIMITS_A_UNIT = 5;

/** Charges lookups to the console's own limit, in addition to the request: the more limits they read, the fewer are allowed. */
export class LookupBudget {
  constructor(
    private readonly limiter: Limiter,
    private readonly limits: () => number,
  ) {}

  /** Rejects with a `ConsoleProblem` if the client has made too many lookups. */
  async take(client: string): Promise<void> {
    const units = Math.min(CONSOLE_LIMIT.burst - 1, Math.floor(this.limits() / LIMITS_A_UNIT));
    if (units === 0) return;
    const { allowed, retryAfterMs } = await this.limiter.consume(client, units);
    if (!allowed) throw tooMany(retryAfterMs);
  }
}

export function tooMany(retryAfterMs: number): ConsoleProblem {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new ConsoleProblem(429, consoleMessages.tooMany(seconds), [], seconds);
}
