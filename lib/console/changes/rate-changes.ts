import { algorithms, type AlgorithmOptions } from '../../engine/algorithms/index.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { LimitMode } from '../../engine/limits/limit-settings.js';
import type { Override, RatePatch } from '../../app/overrides/override.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import type { CandidateInfo, Changed, LimitTotals, RateInfo, Rates } from '../api.js';
import type { Fields } from '../fields.js';
import { type Cause, problemOf, tried, unreadProblem, wrongFields } from '../problem.js';
import { rateText } from '../../nest/explain/format.js';
import type { CatalogEntry, LimitCatalog } from '../limit-catalog.js';
import type { ShownNames } from '../shown-names.js';

/** Shows and changes rates, modes and candidates. */
export class RateChanges {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly service: LimiterService,
    private readonly overrides: Overrides,
    private readonly names: ShownNames,
    /** The key of an override by its hash; `undefined` if there is none. */
    private readonly keyOf: (label: string, id: string) => Promise<string | undefined>,
    private readonly now: () => number,
  ) {}

  /** Reads the limit of a request, whose rate must be changeable. */
  limit(fields: Fields): CatalogEntry | undefined {
    const entry = this.catalog.requested(fields);
    if (entry && !this.catalog.isChangeable(entry)) fields.refuse('limit', consoleMessages.unchangeableLimit());
    return entry;
  }

  /** The rates of one limit or of all. */
  async all(lastHour: Record<string, LimitTotals>, only?: string): Promise<Rates> {
    const failure = await this.overrides.readIfPossible();
    const entries = this.catalog.entries().filter(({ label }) => only === undefined || label === only);
    const rates = entries.flatMap((entry) => this.info(entry, lastHour) ?? []);
    const changes = await this.service.changes({ last: 1 }).catch(() => undefined);
    return {
      rates,
      version: changes === undefined ? null : (changes[0]?.version ?? 0),
      problem: failure && unreadProblem(failure),
    };
  }

  set({ rule }: CatalogEntry, patch: Record<string, unknown>, ends: Ends, cause: Cause): Promise<Changed> {
    return this.compared('rate', rule.name, () =>
      tried('patch', () => this.overrides.setRate('set', rule.name, patch, { ...cause, ...ends }, 'setRate')),
    );
  }

  clear({ rule }: CatalogEntry, cause: Cause): Promise<Changed> {
    return this.compared('rate', rule.name, () => tried('limit', () => this.overrides.clearRate(rule.name, cause)));
  }

  setMode({ rule }: CatalogEntry, mode: LimitMode, ends: Ends, cause: Cause): Promise<Changed> {
    return this.compared('mode', rule.name, () =>
      tried('mode', () => this.overrides.setMode(rule.name, mode, { ...cause, ...ends })),
    );
  }

  clearMode({ rule }: CatalogEntry, cause: Cause): Promise<Changed> {
    return this.compared('mode', rule.name, () => tried('limit', () => this.overrides.clearMode(rule.name, cause)));
  }

  /** Ends an override, of all identities or of a key by its id on a page. */
  async clearOf({ rule, label }: CatalogEntry, of: 'rate' | 'mode', id: string, cause: Cause): Promise<Changed> {
    const key = await this.keyOf(label, id);
    if (key === undefined) return { changed: false };
    const options = { ...cause, ...(key !== '' && { key }) };
    const version = await tried('limit', () =>
      of === 'rate' ? this.overrides.clearRate(rule.name, options) : this.overrides.clearMode(rule.name, options),
    );
    return { changed: version !== undefined, version };
  }

  /** Starts counting a second version in addition to the current limit. */
  setCandidate(entry: CatalogEntry, candidate: Record<string, unknown>, cause: Cause): Promise<Changed> {
    return this.merged(entry, cause, ({ patch }) => ({ ...patch, candidate }));
  }

  /** Lets the candidate decide instead of the limit, until the current change of the limit would have expired. */
  enforceCandidate(entry: CatalogEntry, cause: Cause): Promise<Changed> {
    return this.merged(entry, cause, ({ candidate, algo }) => {
      if (candidate === undefined) throw wrongFields([{ field: 'limit', message: consoleMessages.noCandidate() }]);
      if (candidate.algo !== algo) {
        throw wrongFields([{ field: 'limit', message: consoleMessages.otherAlgorithm(candidate.algo, algo) }]);
      }
      const { algo: _, ...options } = candidate;
      return { ...options, candidate: null };
    });
  }

  clearCandidate(entry: CatalogEntry, cause: Cause): Promise<Changed> {
    return this.merged(entry, cause, ({ candidate, patch }) => {
      if (candidate === undefined) return 'unchanged';
      const { candidate: _, ...rest } = patch;
      const isConfigured = entry.rule.configured.candidate !== undefined;
      if (!isConfigured && Object.keys(rest).length === 0) return 'cleared';
      return isConfigured ? { ...rest, candidate: null } : rest;
    });
  }

  /** Sets a rate derived from the current one, even if somebody has just changed that. */
  private merged(
    entry: CatalogEntry,
    cause: Cause,
    merge: (current: Current) => Record<string, unknown> | 'cleared' | 'unchanged',
  ): Promise<Changed> {
    const { name } = entry.rule;
    return this.compared('rate', name, async () => {
      const version = await tried('patch', () =>
        this.overrides.onLastVersion(async (lastVersion) => {
          const current = await this.current(entry);
          const patch = merge(current);
          if (patch === 'unchanged') return 'unchanged';
          if (patch === 'cleared') return this.overrides.clearRate(name, cause, lastVersion);
          const options = { ...cause, ...current.ends };
          return this.overrides.setRate('set', name, patch, options, 'setRate', lastVersion);
        }),
      );
      return version === 'unchanged' ? undefined : version;
    });
  }

  /** Makes a change, and reports the values before and after and the number of the change. */
  private async compared(
    kind: 'rate' | 'mode',
    name: string,
    change: () => Promise<number | undefined>,
  ): Promise<Changed> {
    const now = () => this.textOf(kind, name).catch(() => undefined);
    const before = await now();
    const version = await change();
    if (version === undefined) return { changed: false };
    const after = await now();
    return { changed: true, before, after, version };
  }

  private async textOf(kind: 'rate' | 'mode', name: string): Promise<string> {
    if (kind === 'mode') return (await this.service.getMode(name)).mode;
    const { options, candidate } = await this.service.getRate(name);
    return candidate === undefined
      ? rateText(options)
      : `${rateText(options)} with the candidate ${rateText(candidate)}`;
  }

  /** The current settings of the limit, and when they expire. */
  private async current({ rule }: CatalogEntry): Promise<Current> {
    const failure = await this.overrides.readIfPossible();
    if (failure !== undefined) throw problemOf(failure, 'limit');
    const { options, candidate, override } = await tried('limit', () => this.service.getRate(rule.name));
    const patch: RatePatch & Record<string, unknown> = override === undefined ? {} : { ...override.patch };
    const endsAt = override?.expiresAt;
    const ends = endsAt === undefined ? {} : { expiresIn: Math.max(1, Math.round(endsAt - this.now())) };
    return { algo: options.algo, candidate, patch, ends };
  }

  private info(entry: CatalogEntry, lastHour: Record<string, LimitTotals>): RateInfo | undefined {
    const { label, rule } = entry;
    const known = this.overrides.known(rule);
    if (known === undefined) return undefined;
    const { rate, mode } = known;
    const { configured } = rule;
    const { algo } = configured.options;
    const shown = (override: Override | undefined) => override && this.names.override(override);
    const totals = Object.hasOwn(lastHour, label) ? lastHour[label] : undefined;
    return {
      limit: label,
      algo,
      patchable: Object.keys(algorithms.get(algo)!.options),
      configured: { rate: rateText(configured.options), options: configured.options, mode: configured.mode },
      current: {
        rate: rateText(rate.options),
        options: rate.options,
        source: rate.source,
        override: shown(rate.override),
      },
      mode: { mode: mode.mode, source: mode.source, override: shown(mode.override) },
      candidate: rate.candidate === undefined ? null : candidateInfo(rate.candidate, totals),
    };
  }
}

interface Current {
  readonly algo: string;
  readonly candidate: AlgorithmOptions | undefined;
  readonly patch: RatePatch & Record<string, unknown>;
  readonly ends: Ends;
}

/** When a change expires, if it does. */
export interface Ends {
  readonly expiresIn?: string | number;
}

function candidateInfo(options: AlgorithmOptions, totals: LimitTotals | undefined): CandidateInfo {
  const { allowed = 0, refused = 0, shadowRefused = 0, candidateRefused = 0, candidateAsked = 0 } = totals ?? {};
  const decisions = allowed + refused + shadowRefused;
  return {
    rate: rateText(options),
    options,
    lastHour: { decisions, refused: refused + shadowRefused, candidateAsked, candidateRefused },
  };
}
