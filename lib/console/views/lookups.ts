import type { CounterState, ExplainedLimit } from '../../nest/explain/explanation.js';
import type { Explanations } from '../../nest/explain/explanations.js';
import { formatExplanation, rateText } from '../../nest/explain/format.js';
import { keysOfShown } from '../../app/rules/ancestors.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { keyProblem } from '../../app/rules/possible-keys.js';
import { hashOf } from '../../storage/telemetry/decision-event.js';
import type { HistoryWindow, LimitState, Lookup } from '../api.js';
import type { CatalogEntry, LimitCatalog } from '../limit-catalog.js';
import { wrongFields } from '../problem.js';
import { addressIn, countedIdentity, type ShownNames } from '../shown-names.js';

/** Addresses are counted as networks if the app uses this key. */
const BY_NAME = 'ip';
/** The number of limits to read at the same time. Requests of the app run between calls. */
const PER_TURN = 16;
const WINDOWS = 24;

/** Finds the state of limits for an identity. Charges nothing. */
export class Lookups {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly explanations: Explanations,
    private readonly service: LimiterService,
    private readonly names: ShownNames,
    private readonly ipv6Prefix: number,
    private readonly now: () => number,
  ) {}

  /** All limits whose keys can be looked up. */
  async all(identity: string): Promise<Lookup> {
    const entries = this.entriesOf(identity);
    const id = hashOf(countedIdentity(identity, BY_NAME, this.ipv6Prefix));
    const limits: LimitState[] = [];
    for (let at = 0; at < entries.length; at += PER_TURN) {
      const some = entries.slice(at, at + PER_TURN).map((entry) => this.one(entry, identity));
      limits.push(...(await Promise.all(some)));
    }
    return { id, limits };
  }

  /** The problem with an identity that a limit never counts: the form that it should have. */
  problemOf(entry: CatalogEntry, identity: string): string | undefined {
    // Its parents are looked up by name.
    return entry.rule.isNested ? undefined : keyProblem(entry.rule, this.counted(entry, identity));
  }

  /** The limits that may count an identity. Throws a `ConsoleProblem` if there are limits, but none of them does. */
  private entriesOf(identity: string): CatalogEntry[] {
    const all = this.catalog.entries().filter(({ rule }) => !rule.perRoute);
    const entries = all.filter((entry) => this.problemOf(entry, identity) === undefined);
    if (entries.length > 0 || all.length === 0) return entries;
    const expected = [...new Set(all.map((entry) => this.problemOf(entry, identity)!))];
    throw wrongFields([{ field: 'identity', message: consoleMessages.countedByNone(expected) }]);
  }

  /** The form in which a limit counts an identity. */
  counted({ rule }: CatalogEntry, identity: string): string {
    return rule.isNested ? identity : countedIdentity(identity, rule.settings.key.given, this.ipv6Prefix);
  }

  async one(entry: CatalogEntry, identity: string): Promise<LimitState> {
    const { label, rule } = entry;
    const key = this.counted(entry, identity);
    const [explanation, history] = await Promise.all([
      this.explanations.explainRule(rule, key, addressIn(identity)),
      this.history(entry, key),
    ]);
    const { limits, unread } = explanation;
    return {
      ...this.state(limits[0]!),
      limit: label,
      history,
      unread,
      explanation: formatExplanation(explanation),
    };
  }

  private state(explained: ExplainedLimit): Omit<LimitState, 'limit' | 'explanation'> {
    const { quota, state, decision, mode, rate, list, share } = explained;
    const known: Partial<CounterState> = state ?? {};
    const { remaining, resetAfterMs, blockedForMs = 0, quota: now = quota, inFlight, source, ...figures } = known;
    return {
      algo: rate.options.algo,
      quota: now,
      used: remaining === undefined ? null : (inFlight ?? quota - remaining),
      remaining: remaining ?? null,
      retryAfterMs: decision?.retryAfterMs ?? null,
      resetAfterMs: resetAfterMs ?? null,
      blockedUntil: blockedForMs > 0 ? Math.round(this.now() + blockedForMs) : null,
      sharedBy: share?.by,
      ...figures,
      mode: mode.mode,
      modeSource: mode.source,
      rate: rateText(rate.options),
      rateSource: rate.source,
      override: rate.override && this.names.override(rate.override),
      modeOverride: mode.override && this.names.override(mode.override),
      listed: list && this.names.item(list),
      source: source ?? null,
    };
  }

  private async history({ rule }: CatalogEntry, key: string): Promise<HistoryWindow[] | undefined> {
    const keys = keysOfShown(rule, key);
    if (rule.limit.algorithm.history === undefined || keys === undefined) return undefined;
    try {
      const windows = await this.service.ofRule(rule).history(keys.key, WINDOWS, keys.options);
      return windows.map(({ start, end, count }) => ({ startsAt: start, endsAt: end, used: count }));
    } catch {
      // The explanation contains the reason.
      return undefined;
    }
  }
}
