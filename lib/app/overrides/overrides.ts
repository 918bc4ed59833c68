import { Inject, Injectable } from '@nestjs/common';
import type { Policy } from '../config/policy.js';
import { OVERRIDE_STORE, RATE_LIMIT_LISTS } from '../config/tokens.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import { messages } from '../../engine/errors/messages/general.js';
import { LimitRegistry } from '../rules/limit-registry.js';
import { refuseImpossibleKeys } from '../rules/possible-keys.js';
import type { Rule } from '../rules/rule.js';
import { RuleCompiler } from '../rules/rule-compiler.js';
import {
  readChangesOptions,
  readRollbackOptions,
  readClearOptions,
  readMode,
  readPageOptions,
  readOptions,
  readQuery,
  readRateOptions,
} from './change-options.js';
import { itemsBefore, laterChange, recordedChange, undone } from './history.js';
import { ListChanges } from './lists/list-changes.js';
import { Lists } from './lists/lists.js';
import { LiveOverrides } from './live-overrides.js';
import { MAX_CHANGES, type OverrideStore, WITHOUT_QUOTA } from './override-store.js';
import type { CurrentMode, CurrentRate, KeyOverrides, OverridePage, RecordedChange } from './override.js';
import { readPatch, withPatch } from './rate-patch.js';

/** The other members of a mode change. */
const OF_MODE = { kind: 'mode', ...WITHOUT_QUOTA } as const;

/** The number of overrides to read at a time. */
const PAGE = 1000;

/** The maximum number of attempts if other changes get in between. */
const MAX_ATTEMPTS = 10;

/** The outcome of undoing one change: the version of the undo, or the later change that prevents it. */
export type Undone = { readonly version: number } | { readonly later: number } | 'unknown';

/**
 * Overrides named limits at run time, and applies the overrides of other instances. Changes resolve to their version, or to `undefined` if
 * nothing had to change. A change with `lastVersion` is only made if that is still the last version.
 */
@Injectable()
export class Overrides {
  /** Adds and removes list entries. */
  readonly lists: ListChanges;
  private readonly live: LiveOverrides;

  constructor(
    private readonly registry: LimitRegistry,
    private readonly compiler: RuleCompiler,
    @Inject(OVERRIDE_STORE) private readonly store: OverrideStore,
    @Inject(RATE_LIMIT_LISTS) lists: Lists,
  ) {
    this.live = new LiveOverrides(registry, compiler, lists);
    this.lists = new ListChanges(this.live, lists, store, () => this.readIfPossible());
    store.subscribe(this.live.apply);
    this.live.addNamedLimits();
    registry.onDefined = () => this.live.addNamedLimits();
  }

  /** Resolves when the stored overrides have been applied, or could not be read. */
  async open(): Promise<void> {
    this.lists.checkConfigured();
    await this.store.watch();
  }

  close(): void {
    this.store.close();
    this.live.close();
  }

  /** Applies the overrides and lists of a policy, and its changes to the limits in the registry. */
  takePolicy(policy: Policy): void {
    this.live.takePolicy(policy);
  }

  async setRate(
    operation: 'set' | 'try',
    name: string,
    patch: unknown,
    options: unknown,
    method: string,
    lastVersion?: number,
  ): Promise<number | undefined> {
    const { overrides, limit } = this.live.of(name, `LimiterService.${method}`);
    const { definition, declaration } = limit;
    const location = `LimiterService.${method} of '${name}'`;
    const { key, ends, inherit, ...cause } = readRateOptions(options, location);
    if (key !== '') refuseImpossibleKeys(limit.rule, key, location);
    const read = readPatch(definition, patch, location);
    const changed = this.compiler.compile(withPatch(definition, read), { ...declaration, location }).limit;
    this.registry.refuseChange(name, changed, location);
    const { quota } = changed;
    const previousQuota = overrides.quotaWithout(key);
    const value = JSON.stringify(read);
    const item = { kind: 'rate', limit: name, key, value, inherit, ends, quota, previousQuota } as const;
    return this.store.write({ operation, items: [item], lastVersion, ...cause });
  }

  async clearRate(name: string, options: unknown, lastVersion?: number): Promise<number | undefined> {
    const { overrides } = this.live.of(name, 'LimiterService.clearRate');
    const { key, ends, ...cause } = readClearOptions(options, `LimiterService.clearRate of '${name}'`);
    const quota = overrides.quotaWithout(key);
    const address = { kind: 'rate', limit: name, key } as const;
    const item = { ...address, value: 'null', inherit: 'keep', ends, quota, previousQuota: quota } as const;
    return this.store.write({ operation: 'clear', items: [item], lastVersion, ...cause });
  }

  async getRate(name: string, query: unknown): Promise<CurrentRate> {
    const { overrides } = this.live.of(name, 'LimiterService.getRate');
    const key = readQuery(query, `LimiterService.getRate of '${name}'`);
    await this.readIfPossible();
    return overrides.currentRate(key);
  }

  async listRates(): Promise<CurrentRate[]> {
    await this.readIfPossible();
    return this.live.ofLimits.map((each) => each.currentRate());
  }

  async setMode(name: string, mode: unknown, options: unknown): Promise<number | undefined> {
    const { limit } = this.live.of(name, 'LimiterService.setMode');
    const location = `LimiterService.setMode of '${name}'`;
    const { key, ends, ...cause } = readOptions(options, location);
    if (key !== '') refuseImpossibleKeys(limit.rule, key, location);
    const value = JSON.stringify(readMode(mode, location));
    const item = { ...OF_MODE, limit: name, key, value, ends };
    return this.store.write({ operation: 'set', items: [item], ...cause });
  }

  async clearMode(name: string, options: unknown): Promise<number | undefined> {
    this.live.of(name, 'LimiterService.clearMode');
    const { key, ends, ...cause } = readClearOptions(options, `LimiterService.clearMode of '${name}'`);
    const item = { ...OF_MODE, limit: name, key, value: 'null', ends };
    return this.store.write({ operation: 'clear', items: [item], ...cause });
  }

  async getMode(name: string, query: unknown): Promise<CurrentMode> {
    const { overrides } = this.live.of(name, 'LimiterService.getMode');
    const key = readQuery(query, `LimiterService.getMode of '${name}'`);
    await this.readIfPossible();
    return overrides.currentMode(key);
  }

  /** The overrides of single keys of a limit. */
  async listKeys(name: string, options: unknown): Promise<OverridePage> {
    const { overrides } = this.live.of(name, 'LimiterService.listRates');
    const { cursor, count } = readPageOptions(options, `LimiterService.listRates of '${name}'`);
    await this.readIfPossible();
    return overrides.page(cursor, count);
  }

  async changes(options: unknown): Promise<RecordedChange[]> {
    const { limit, last } = readChangesOptions(options, 'LimiterService.changes');
    if (limit !== undefined) this.live.of(limit, 'LimiterService.changes');
    const history = await this.store.changes(limit === undefined ? last : MAX_CHANGES);
    const changes = history.map(recordedChange).toReversed();
    const ofLimit = changes.filter(
      ({ overrides }) => limit === undefined || overrides.some((each) => each.limit === limit),
    );
    return ofLimit.slice(0, last);
  }

  /**
   * Restores the state before all changes after a version. Retries if others change something at the same time, unless `seen` is given, the
   * last version that the caller has seen: then it resolves to `'overtaken'`.
   */
  async rollback(version: number, options: unknown, seen?: number): Promise<boolean | 'overtaken'> {
    const location = 'LimiterService.rollback';
    const cause = readRollbackOptions(options, location);
    return this.untilDone(async () => {
      const history = await this.store.changes(MAX_CHANGES);
      const lastVersion = history.at(-1)?.version ?? 0;
      if (seen !== undefined && seen !== lastVersion) return 'overtaken';
      const items = undone(history, version, location);
      if (items.length === 0) return false;
      const change = { operation: 'restore', items, lastVersion, rollbackTo: version, ...cause } as const;
      return (await this.store.write(change)) === undefined ? undefined : true;
    });
  }

  /** Restores the state before one change, unless a later one has affected the same overrides. */
  async undo(version: number, options: unknown): Promise<Undone> {
    const location = 'LimiterService.rollback';
    const cause = readRollbackOptions(options, location);
    return this.untilDone(async () => {
      const history = await this.store.changes(MAX_CHANGES);
      const change = history.find((each) => each.version === version);
      if (change === undefined) return 'unknown';
      const later = laterChange(history, version, change.changes);
      if (later !== undefined) return { later: later.version };
      const items = itemsBefore([change], location);
      const lastVersion = history.at(-1)!.version;
      const rollbackTo = lastVersion === version ? version - 1 : undefined;
      const undo = await this.store.write({ operation: 'restore', items, lastVersion, rollbackTo, ...cause });
      return undo === undefined ? undefined : { version: undo };
    });
  }

  /** The version of the last change, 0 if there is none. */
  async lastVersion(): Promise<number> {
    return (await this.store.changes(1)).at(-1)?.version ?? 0;
  }

  /**
   * Makes a change that depends on the current overrides. The function receives the last version, and is called again if others have
   * changed something.
   */
  async onLastVersion<T>(change: (lastVersion: number) => Promise<T | undefined>): Promise<T> {
    return this.untilDone(async () => change(await this.lastVersion()));
  }

  /**
   * Calls a function again while it resolves to `undefined`, which means that others changed something in between. Throws
   * `RateLimitStoreError` if that keeps happening.
   */
  private async untilDone<T>(attempt: () => Promise<T | undefined>): Promise<T> {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const done = await attempt();
      if (done !== undefined) return done;
    }
    throw new RateLimitStoreError(messages.rollbackOvertaken(), { code: 'SLUICE_ROLLBACK_CONFLICT' });
  }

  /**
   * Reads the current overrides. If the store cannot be read, or not in time, the last known overrides stay in effect, and it resolves to
   * the error.
   */
  async readIfPossible(timeoutMs?: number): Promise<RateLimitStoreError | undefined> {
    try {
      const read = this.store.read();
      await (timeoutMs === undefined ? read : withDeadline(read, timeoutMs));
      return undefined;
    } catch (error) {
      if (error instanceof RateLimitStoreError) return error;
      throw error;
    }
  }

  /** All locally known overrides, limit by limit: first that of all keys, whose key is empty, then those of single keys. */
  *inForce(): Iterable<KeyOverrides & { readonly limit: Rule }> {
    for (const overrides of this.live.ofLimits) {
      const limit = overrides.limit!.rule;
      const [rate, mode] = [overrides.currentRate().override, overrides.currentMode().override];
      if (rate !== undefined || mode !== undefined) yield { limit, key: '', rate, mode };
      let cursor: string | undefined;
      do {
        const page = overrides.page(cursor, PAGE);
        for (const each of page.overrides) yield { limit, ...each };
        cursor = page.next;
      } while (cursor !== undefined);
    }
  }

  /** The locally known rate and mode for a key of a limit; `undefined` if the limit cannot be overridden. */
  known(limit: Rule, key?: string): { rate: CurrentRate; mode: CurrentMode } | undefined {
    const overrides = this.live.ofLimits.find((each) => each.limit!.rule === (limit.ofAll ?? limit));
    return overrides && { rate: overrides.currentRate(key), mode: overrides.currentMode(key) };
  }
}
