import { reasonOf } from '../../util/reason-of.js';
import { consoleMessages } from '../../errors/messages/console.js';
import type { Limiter } from '../../limiter/limiter.js';
import { keysOfShown } from '../../rules/resolve/keys-of-shown.js';
import type { WithinOptions } from '../../limits/consume-options.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { KeyChanged } from '../api.js';
import type { Fields } from '../fields.js';
import type { CatalogEntry, LimitCatalog } from '../limit-catalog.js';
import type { Lookups } from '../views/lookups.js';
import { type Cause, tried } from './cause.js';
import type { ConsoleLog, LoggedChange } from './console-log.js';

/** What is changed: a limit, for an identity. */
interface Target {
  readonly entry: CatalogEntry;
  readonly identity: string;
}

/** Changes the state of one key of a limit. Every change returns the limit's state for the key afterwards. */
export class KeyChanges {
  constructor(
    private readonly catalog: LimitCatalog,
    private readonly service: LimiterService,
    private readonly lookups: Lookups,
    private readonly log: ConsoleLog,
    private readonly now: () => number,
  ) {}

  /** Reads the limit and the identity of a request. */
  target(fields: Fields): () => Target {
    const identity = fields.identity();
    const label = fields.text('limit', 'the name of a limit');
    const entry = this.catalog.find(label);
    if (label !== '' && entry === undefined) fields.refuse('limit', consoleMessages.unknownLimit());
    else if (entry?.rule.perRoute === true) fields.refuse('limit', consoleMessages.countsPerRoute());
    else if (entry !== undefined && keysOfShown(entry.rule, identity) === undefined) {
      fields.refuse('identity', consoleMessages.wantsPath([...entry.rule.ancestors.toReversed(), entry.rule]));
    }
    const wants = entry && identity !== '' ? this.lookups.problemOf(entry, identity) : undefined;
    if (wants !== undefined) fields.refuse('identity', consoleMessages.notOfLimit(wants));
    return () => ({ entry: entry!, identity: this.lookups.counted(entry!, identity) });
  }

  /** Changes a counter, and logs the change. */
  async act(
    { entry, identity }: Target,
    action: LoggedChange['action'],
    after: string | undefined,
    { by, reason }: Cause,
    change: (limiter: Limiter, key: string, options: WithinOptions) => Promise<void>,
  ): Promise<KeyChanged> {
    const { key, options } = keysOfShown(entry.rule, identity)!;
    await tried('limit', () => change(this.service.ofRule(entry.rule), key, options));
    const logged = {
      at: Math.round(this.now()),
      action,
      limit: entry.label,
      key: identity,
      ...(by !== undefined && { by }),
      reason,
      ...(after !== undefined && { after }),
    };
    const warning = await this.log.write(logged).then(
      () => undefined,
      (error: unknown) => consoleMessages.notLogged(reasonOf(error)),
    );
    return this.changed(entry, identity, warning);
  }

  /** Overrides the rate of a key. */
  async override(
    { entry, identity }: Target,
    patch: Record<string, unknown>,
    expiresIn: string | number | undefined,
    cause: Cause,
  ): Promise<KeyChanged> {
    // An override applies to the limit's own key, without those of the limits it is within.
    const { key } = keysOfShown(entry.rule, identity)!;
    const options = { ...cause, key, ...(expiresIn !== undefined && { expiresIn }) };
    await tried('patch', () => this.service.setRate(entry.rule.name, patch, options));
    return this.changed(entry, identity);
  }

  /** Ends the override of a key. */
  async clearOverride({ entry, identity }: Target, cause: Cause): Promise<KeyChanged> {
    const { key } = keysOfShown(entry.rule, identity)!;
    const cleared = await tried('limit', () => this.service.clearRate(entry.rule.name, { ...cause, key }));
    return this.changed(entry, identity, cleared ? undefined : consoleMessages.nothingToClear());
  }

  private async changed(entry: CatalogEntry, identity: string, warning?: string): Promise<KeyChanged> {
    const state = await this.lookups.one(entry, identity);
    return { state, ...(warning !== undefined && { warning }) };
  }
}
