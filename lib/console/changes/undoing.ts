import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { RecordedChange } from '../../app/overrides/override.js';
import type { Changed, RollbackPreview } from '../api.js';
import { ConsoleProblem } from '../problem.js';
import type { ChangeLog } from './change-log.js';
import { type Cause, problemOf, tried } from './cause.js';

/** As many changes as are kept. */
const MOST_READ = 1000;

type ChangedOverride = RecordedChange['overrides'][number];
type Stored = { readonly expiresAt: number | undefined };

/** Undoes changes of rates, modes and lists: all since one, or one alone. */
export class Undoing {
  constructor(
    private readonly service: LimiterService,
    private readonly log: ChangeLog,
    private readonly now: () => number,
  ) {}

  /** What a rollback to a version would change, with the newest version that this holds for. */
  async preview(version: number): Promise<RollbackPreview> {
    const changes = await this.read();
    const first = new Map<string, ChangedOverride>();
    const last = new Map<string, ChangedOverride>();
    // The newest comes first.
    for (const change of changes) {
      if (change.version <= version) continue;
      for (const changed of change.overrides) {
        const thing = thingOf(changed);
        if (!last.has(thing)) last.set(thing, changed);
        first.set(thing, changed);
      }
    }
    const undone = [...last].flatMap(([thing, newest]) => {
      const before = this.inForce<Stored>(newest.after);
      const after = this.inForce<Stored>(first.get(thing)!.before);
      const difference = this.log.difference({ ...newest, before, after } as ChangedOverride);
      return difference.before === difference.after ? [] : [difference];
    });
    return { version, newest: changes[0]?.version ?? 0, undone };
  }

  /** Returns everything to a version. `newest` is the version for which the user has seen what this undoes. */
  async rollback(version: number, newest: number | undefined, cause: Cause): Promise<Changed> {
    if (newest !== undefined) {
      const [last] = await this.read(1);
      if ((last?.version ?? 0) !== newest) throw new ConsoleProblem(409, consoleMessages.changedMeanwhile());
    }
    return { changed: await tried('version', () => this.service.rollback(version, cause)) };
  }

  /** Undoes one change, unless a later one has changed the same. */
  async undo(version: number, cause: Cause): Promise<Changed> {
    const changes = await this.read();
    const change = changes.find((each) => each.version === version);
    if (change === undefined) throw new ConsoleProblem(404, consoleMessages.unknownChange(version));
    const later = changes.filter((each) => each.version > version);
    const things = new Set(change.overrides.map(thingOf));
    const standing = later.find(({ overrides }) => overrides.some((each) => things.has(thingOf(each))));
    if (standing !== undefined) throw new ConsoleProblem(409, consoleMessages.changedLater(standing.version));
    if (later.length === 0) return this.rollback(version - 1, undefined, cause);
    let changed = false;
    for (const each of change.overrides) if (await tried('version', () => this.invert(each, cause))) changed = true;
    return { changed };
  }

  /** The newest change of a rate, a mode or an entry of a list: what somebody has just done. */
  async newestOf(kind: ChangedOverride['kind'], limit: string | undefined, key?: string): Promise<number | undefined> {
    const changes = await this.read(20).catch(() => []);
    const isMeant = (each: ChangedOverride) =>
      each.kind === kind && each.limit === limit && (key === undefined || ('key' in each && each.key === key));
    return changes.find(({ overrides }) => overrides.some(isMeant))?.version;
  }

  private async invert(changed: ChangedOverride, cause: Cause): Promise<boolean> {
    const { service } = this;
    const { limit } = changed;
    if (changed.kind === 'list') {
      const before = this.inForce(changed.before);
      const options = { ...cause, ...(limit !== undefined && { limit }) };
      if (before === undefined) return service.unlist(changed.entry, options);
      await service[before.list](changed.entry, { ...options, ...this.ends(before) });
      return true;
    }
    const options = { ...cause, ...(changed.key !== undefined && { key: changed.key }) };
    if (changed.kind === 'rate') {
      const before = this.inForce(changed.before);
      if (before === undefined) return service.clearRate(changed.limit, options);
      await service.setRate(changed.limit, before.patch, { ...options, ...this.ends(before) });
      return true;
    }
    const before = this.inForce(changed.before);
    if (before === undefined) return service.clearMode(changed.limit, options);
    await service.setMode(changed.limit, before.mode, { ...options, ...this.ends(before) });
    return true;
  }

  /** When what held before is to end: as it would have. */
  private ends({ expiresAt }: Stored): { expiresIn?: number } {
    return expiresAt === undefined ? {} : { expiresIn: Math.max(1, Math.round(expiresAt - this.now())) };
  }

  /** What still holds: what has expired does not. */
  private inForce<T extends Stored>(stored: T | undefined): T | undefined {
    return stored?.expiresAt !== undefined && stored.expiresAt <= this.now() ? undefined : stored;
  }

  private async read(last = MOST_READ): Promise<RecordedChange[]> {
    try {
      return await this.service.changes({ last });
    } catch (error) {
      throw problemOf(error, 'version');
    }
  }
}

/** Identifies what is changed: a rate, a mode, or an entry of a list. */
function thingOf(changed: ChangedOverride): string {
  const { kind, limit = null } = changed;
  return JSON.stringify([kind, limit, 'entry' in changed ? changed.entry : (changed.key ?? null)]);
}
