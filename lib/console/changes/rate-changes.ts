import { algorithms, type AlgorithmOptions } from '../../engine/algorithms/index.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { LimitMode } from '../../engine/limits/limit-mode.js';
import type { RatePatch } from '../../app/overrides/override.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import type { CandidateInfo, Changed, LimitTotals, RateInfo, Rates } from '../api.js';
import type { Fields } from '../fields.js';
import { type CatalogEntry, type LimitCatalog, rateText } from '../limit-catalog.js';
import { wrongFields } from '../problem.js';
import type { ShownNames } from '../shown-names.js';
import { type Cause, problemOf, tried, unreadProblem } from './cause.js';
import type { Undoing } from './undoing.js';

/** Shows and changes rates, modes and candidates. */
export class RateChanges {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly service: LimiterService,
    private readonly overrides: Overrides,
    private readonly names: ShownNames,
    private readonly undoing: Undoing,
    /** The key of an override, by its hash; `undefined` if there is none. */
    private readonly keyOf: (label: string, id: string) => Promise<string | undefined>,
    private readonly now: () => number,
  ) {}

  /** Reads the limit of a request: one whose rate can be changed. */
  limit(fields: Fields): CatalogEntry | undefined {
    const label = fields.text('limit', 'the name of a limit');
    const entry = this.catalog.find(label);
    if (label === '') return undefined;
    if (entry === undefined) fields.refuse('limit', consoleMessages.unknownLimit());
    else if (!this.catalog.isChangeable(entry)) fields.refuse('limit', consoleMessages.unchangeableLimit());
    return entry;
  }

  /** The rates of all limits, or of one. */
  async all(lastHour: Record<string, LimitTotals>, only?: string): Promise<Rates> {
    const failure = await this.overrides.readIfPossible();
    const entries = this.catalog.entries().filter(({ label }) => only === undefined || label === only);
    const rates = entries.flatMap((entry) => this.info(entry, lastHour) ?? []);
    const changes = await this.service.changes({ last: 1 }).catch(() => undefined);
    return {
      rates,
      version: changes === undefined ? null : (changes[0]?.version ?? 0),
      ...(failure && { problem: unreadProblem(failure) }),
    };
  }

  set({ rule }: CatalogEntry, patch: Record<string, unknown>, ends: Ends, cause: Cause): Promise<Changed> {
    return this.compared('rate', rule.name, async () => {
      await tried('patch', () => this.service.setRate(rule.name, patch, { ...cause, ...ends }));
      return true;
    });
  }

  clear({ rule }: CatalogEntry, cause: Cause): Promise<Changed> {
    return this.compared('rate', rule.name, () => tried('limit', () => this.service.clearRate(rule.name, cause)));
  }

  setMode({ rule }: CatalogEntry, mode: LimitMode, ends: Ends, cause: Cause): Promise<Changed> {
    return this.compared('mode', rule.name, async () => {
      await tried('mode', () => this.service.setMode(rule.name, mode, { ...cause, ...ends }));
      return true;
    });
  }

  clearMode({ rule }: CatalogEntry, cause: Cause): Promise<Changed> {
    return this.compared('mode', rule.name, () => tried('limit', () => this.service.clearMode(rule.name, cause)));
  }

  /** Ends an override of a key that a page identifies, or of all identities. */
  async clearOf({ rule, label }: CatalogEntry, of: 'rate' | 'mode', id: string, cause: Cause): Promise<Changed> {
    const key = await this.keyOf(label, id);
    if (key === undefined) return { changed: false };
    const options = { ...cause, ...(key !== '' && { key }) };
    const changed = await tried('limit', () =>
      of === 'rate' ? this.service.clearRate(rule.name, options) : this.service.clearMode(rule.name, options),
    );
    const version = changed ? await this.undoing.newestOf(of, rule.name, key === '' ? undefined : key) : undefined;
    return { changed, ...(version !== undefined && { version }) };
  }

  /** Counts a second version beside the current limit. */
  async setCandidate(entry: CatalogEntry, candidate: Record<string, unknown>, cause: Cause): Promise<Changed> {
    const { patch, ends } = await this.current(entry);
    return this.set(entry, { ...patch, candidate }, ends, cause);
  }

  /** Lets the candidate decide in place of the limit, until the limit's own change would have expired. */
  async enforceCandidate(entry: CatalogEntry, cause: Cause): Promise<Changed> {
    const { candidate, algo, ends } = await this.current(entry);
    if (candidate === undefined) throw wrongFields([{ field: 'limit', message: consoleMessages.noCandidate() }]);
    if (candidate.algo !== algo) {
      throw wrongFields([{ field: 'limit', message: consoleMessages.otherAlgorithm(candidate.algo, algo) }]);
    }
    const { algo: _, ...options } = candidate;
    return this.set(entry, { ...options, candidate: null }, ends, cause);
  }

  /** Stops counting the second version. */
  async clearCandidate(entry: CatalogEntry, cause: Cause): Promise<Changed> {
    const { candidate, patch, ends } = await this.current(entry);
    if (candidate === undefined) return { changed: false };
    const { candidate: _, ...rest } = patch;
    const isConfigured = entry.rule.configured.candidate !== undefined;
    if (!isConfigured && Object.keys(rest).length === 0) return this.clear(entry, cause);
    return this.set(entry, isConfigured ? { ...rest, candidate: null } : rest, ends, cause);
  }

  /** Makes a change, and says what was there before, what is there now, and which change it was. */
  private async compared(kind: 'rate' | 'mode', name: string, change: () => Promise<boolean>): Promise<Changed> {
    const now = () => this.textOf(kind, name).catch(() => undefined);
    const before = await now();
    const changed = await change();
    if (!changed) return { changed };
    const [after, version] = await Promise.all([now(), this.undoing.newestOf(kind, name)]);
    return {
      changed,
      ...(before !== undefined && { before }),
      ...(after !== undefined && { after }),
      ...(version !== undefined && { version }),
    };
  }

  private async textOf(kind: 'rate' | 'mode', name: string): Promise<string> {
    if (kind === 'mode') return (await this.service.getMode(name)).mode;
    const { options, candidate } = await this.service.getRate(name);
    return candidate === undefined
      ? rateText(options)
      : `${rateText(options)} with the candidate ${rateText(candidate)}`;
  }

  /** The current settings of the limit, and when they expire. */
  private async current({ rule }: CatalogEntry) {
    const failure = await this.overrides.readIfPossible();
    if (failure !== undefined) throw problemOf(failure, 'limit');
    const { options, candidate, override } = await tried('limit', () => this.service.getRate(rule.name));
    const patch: RatePatch & Record<string, unknown> = override === undefined ? {} : { ...override.patch };
    const left =
      override?.expiresAt === undefined ? undefined : Math.max(1, Math.round(override.expiresAt - this.now()));
    const ends: Ends = left === undefined ? {} : { expiresIn: left };
    return { algo: options.algo, candidate, patch, ends };
  }

  private info(entry: CatalogEntry, lastHour: Record<string, LimitTotals>): RateInfo | undefined {
    const { label, rule } = entry;
    const known = this.overrides.known(rule);
    if (known === undefined) return undefined;
    const { rate, mode } = known;
    const { configured } = rule;
    const algorithm = algorithms.get(configured.options.algo)!;
    return {
      limit: label,
      algo: configured.options.algo,
      patchable: Object.keys(algorithm.options),
      configured: {
        rate: rateText(configured.options),
        options: configured.options,
        mode: configured.mode,
      },
      current: {
        rate: rateText(rate.options),
        options: rate.options,
        source: rate.source,
        ...(rate.override && { override: this.names.override(rate.override) }),
      },
      mode: {
        mode: mode.mode,
        source: mode.source,
        ...(mode.override && { override: this.names.override(mode.override) }),
      },
      candidate: rate.candidate === undefined ? null : candidateInfo(rate.candidate, ownTotals(lastHour, label)),
    };
  }
}

/** When a change expires, if it does. */
export interface Ends {
  readonly expiresIn?: string | number;
}

function ownTotals(totals: Record<string, LimitTotals>, label: string): LimitTotals | undefined {
  return Object.hasOwn(totals, label) ? totals[label] : undefined;
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
