import { reasonOf } from '../../engine/errors/reasons.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { Limiter } from '../../app/limiter/limiter.js';
import { keysOfShown } from '../../app/rules/ancestors.js';
import type { WithinOptions } from '../../engine/limits/consume-options.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import { prefixOf } from '../../app/overrides/override-address.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import type { KeyChanged, LimitState } from '../api.js';
import type { Fields } from '../fields.js';
import type { CatalogEntry, LimitCatalog } from '../limit-catalog.js';
import type { Lookups } from '../views/lookups.js';
import { type Cause, tried } from '../problem.js';
import type { ConsoleLog, LoggedChange } from './change-log.js';

interface Target {
  readonly entry: CatalogEntry;
  readonly identity: string;
  /** The hash in the request, if it contained no identity. The user may know only this hash. */
  readonly id?: string;
}

/** A change of a counter. */
export interface KeyChange {
  /** Its duration or units as text, for the log. */
  readonly after?: string;
  readonly change: (limiter: Limiter, key: string, options: WithinOptions) => Promise<unknown>;
}

/** Changes the state of one key of a limit. Each change returns the limit's state for the key afterwards. */
export class KeyChanges {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly service: LimiterService,
    private readonly overrides: Overrides,
    private readonly lookups: Lookups,
    /** The identity of a key by its hash; `undefined` if unknown. Rejects with `RateLimitStoreError`. */
    private readonly identityOf: (label: string, id: string) => Promise<string | undefined>,
    private readonly log: ConsoleLog,
    private readonly now: () => number,
  ) {}

  /** Reads the limit of a request, and its identity or the `id` from the top keys. */
  async target(fields: Fields): Promise<() => Target> {
    const entry = this.catalog.requested(fields);
    const id = fields.has('identity') ? undefined : fields.optional('id', (field) => fields.text(field, 'a hash'));
    const known = id && entry && (await tried('id', () => this.identityOf(entry.label, id)));
    if (id !== undefined && entry !== undefined && known === undefined)
      fields.refuse('id', consoleMessages.unknownId());
    const identity = id === undefined ? fields.identity() : (known ?? '');
    if (entry?.rule.perRoute === true) fields.refuse('limit', consoleMessages.countsPerRoute());
    else if (entry !== undefined && keysOfShown(entry.rule, identity) === undefined) {
      fields.refuse('identity', consoleMessages.expectedPath([...entry.rule.ancestors.toReversed(), entry.rule]));
    }
    const expected = entry && identity !== '' && id === undefined ? this.lookups.problemOf(entry, identity) : undefined;
    if (expected !== undefined) fields.refuse('identity', consoleMessages.notOfLimit(expected));
    return () =>
      id === undefined
        ? { entry: entry!, identity: this.lookups.counted(entry!, identity) }
        : { entry: entry!, identity, id };
  }

  /** Changes a counter, and logs the change. */
  async act(
    target: Target,
    action: LoggedChange['action'],
    { after, change }: KeyChange,
    { by, reason }: Cause,
  ): Promise<KeyChanged> {
    const { entry, identity } = target;
    const { key, options } = keysOfShown(entry.rule, identity)!;
    const before = await this.stateOf(target);
    await tried('limit', () => change(this.service.ofRule(entry.rule), key, options));
    const logged = { at: Math.round(this.now()), action, limit: entry.label, key: identity, by, reason, after };
    const failure: unknown = await this.log.write(logged).catch((error: unknown) => error);
    const warning = failure === undefined ? undefined : consoleMessages.notLogged(reasonOf(failure));
    return { state: await this.stateOf(target), before, warning };
  }

  async override(
    target: Target,
    patch: Record<string, unknown>,
    expiresIn: string | number | undefined,
    cause: Cause,
  ): Promise<KeyChanged> {
    const { entry, identity } = target;
    // An override applies to the limit's own key, without those of its parents.
    const { key } = keysOfShown(entry.rule, identity)!;
    const options = { ...cause, key, ...(expiresIn !== undefined && { expiresIn }) };
    const before = await this.stateOf(target);
    const { name } = entry.rule;
    const version = await tried('patch', () => this.overrides.setRate('set', name, patch, options, 'setRate'));
    return { state: await this.stateOf(target), before, version };
  }

  /** Returns true if the rate of exactly this key is overridden without an end, or if the key is a pattern. */
  async hasEndlessRate({ entry, identity }: Target): Promise<boolean> {
    const { key } = keysOfShown(entry.rule, identity)!;
    if (prefixOf(key) !== undefined) return true;
    const { override } = await tried('limit', () => this.service.getRate(entry.rule.name, { key }));
    return override?.key === key && override.expiresAt === undefined;
  }

  async clearOverride(target: Target, cause: Cause): Promise<KeyChanged> {
    const { entry, identity } = target;
    const { key } = keysOfShown(entry.rule, identity)!;
    const before = await this.stateOf(target);
    const version = await tried('limit', () => this.overrides.clearRate(entry.rule.name, { ...cause, key }));
    const warning = version === undefined ? consoleMessages.nothingToClear() : undefined;
    return { state: await this.stateOf(target), before, version, warning };
  }

  private async stateOf({ entry, identity, id }: Target): Promise<LimitState> {
    const found = await this.lookups.one(entry, identity);
    // The user may know only the hash.
    return id === undefined ? found : { ...found, explanation: found.explanation.replaceAll(identity, id) };
  }
}
