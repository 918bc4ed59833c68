import { consoleMessages } from '../../engine/errors/messages/console.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { RecordedChange } from '../../app/overrides/override.js';
import type { Overrides } from '../../app/overrides/overrides.js';
import type { Changed, RollbackPreview } from '../api.js';
import { type Cause, ConsoleProblem, tried } from '../problem.js';
import type { ChangeLog } from './change-log.js';

/** As many changes as are kept. */
const MOST_READ = 1000;

type ChangedOverride = RecordedChange['overrides'][number];
type Stored = { readonly expiresAt: number | undefined };

/** Undoes changes of rates, modes and lists: a single one, or all since a version. */
export class Undoing {
  constructor(
    private readonly service: LimiterService,
    private readonly overrides: Overrides,
    private readonly log: ChangeLog,
    private readonly now: () => number,
  ) {}

  /** The changes of a rollback to a version, and the newest version that this preview includes. */
  async preview(version: number): Promise<RollbackPreview> {
    const changes = await tried('version', () => this.service.changes({ last: MOST_READ }));
    const first = new Map<string, ChangedOverride>();
    const last = new Map<string, ChangedOverride>();
    // The newest change comes first.
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

  /** Returns all settings to a version. `newest` is the version up to which the user has seen the preview. */
  async rollback(version: number, newest: number | undefined, cause: Cause): Promise<Changed> {
    const changed = await tried('version', () => this.overrides.rollback(version, cause, newest));
    if (changed === 'overtaken') throw new ConsoleProblem(409, consoleMessages.changedMeanwhile());
    return { changed };
  }

  /** Undoes one change, unless a later one has changed the same setting. */
  async undo(version: number, cause: Cause): Promise<Changed> {
    const undone = await tried('version', () => this.overrides.undo(version, cause));
    if (undone === 'unknown') throw new ConsoleProblem(404, consoleMessages.unknownChange(version));
    if ('later' in undone) throw new ConsoleProblem(409, consoleMessages.changedLater(undone.later));
    return { changed: true };
  }

  /** The override if it is in effect; `undefined` once it has expired. */
  private inForce<T extends Stored>(stored: T | undefined): T | undefined {
    return stored?.expiresAt !== undefined && stored.expiresAt <= this.now() ? undefined : stored;
  }
}

/** Identifies the changed setting: a rate, a mode, or an entry of a list. */
function thingOf(changed: ChangedOverride): string {
  const { kind, limit = null } = changed;
  return JSON.stringify([kind, limit, 'entry' in changed ? changed.entry : (changed.key ?? null)]);
}
