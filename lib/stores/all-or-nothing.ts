import { isRefusal } from '../limits/check-result.js';
import type { CheckEntry } from '../limits/counter.js';
import { withDeadline } from '../redis/deadline.js';
import type { StoreDecision } from './store.js';

/** Entries of a check that are charged in one step: all of them or none. */
export interface Part {
  readonly entries: readonly CheckEntry[];
  /** Charges the entries, or looks at them. */
  ask(peek: boolean): Promise<readonly StoreDecision[]>;
  /** Gives back what was charged. The last part needs none: no later part can refuse. */
  giveBack?(charged: readonly StoreDecision[]): Promise<void>;
  /**
   * The decisions of the entries after giving them back.
   * @default the entries are looked at
   */
  afterwards?(charged: readonly StoreDecision[]): readonly StoreDecision[];
}

/** When the whole check must be done, in milliseconds of the process's clock, and how long it had, for errors. */
export interface Deadline {
  readonly at: number;
  readonly timeoutMs: number;
}

/**
 * Charges the parts of a check one after another. If one refuses, those before it give back what they charged, and those behind
 * it are only looked at. If one fails, what was charged is given back, too. The decisions are in the order of `entries`.
 */
export async function allOrNothing(
  entries: readonly CheckEntry[],
  parts: readonly Part[],
  peek: boolean,
  deadline?: Deadline,
): Promise<StoreDecision[]> {
  const answers = new Map<Part, readonly StoreDecision[]>();
  const charged: Part[] = [];
  let charges = !peek;
  const giveBack = () => Promise.all(charged.splice(0).map(async (part) => part.giveBack?.(answers.get(part)!)));
  try {
    for (const part of parts) {
      const decisions = await part.ask(!charges);
      answers.set(part, decisions);
      if (!charges) continue;
      if (!part.entries.some(({ limit }, index) => isRefusal(limit, decisions[index]!))) {
        charged.push(part);
        continue;
      }
      charges = false;
      const refunded = [...charged];
      await inTime(giveBack(), deadline);
      await Promise.all(
        refunded.map(async (before) =>
          answers.set(before, before.afterwards?.(answers.get(before)!) ?? (await before.ask(true))),
        ),
      );
    }
  } catch (error) {
    // The time of the check may be up: units that cannot be given back expire by themselves.
    void giveBack().catch(() => undefined);
    throw error;
  }
  const all = new Map<CheckEntry, StoreDecision>();
  for (const part of parts) part.entries.forEach((entry, index) => all.set(entry, answers.get(part)![index]!));
  return entries.map((entry) => all.get(entry)!);
}

async function inTime<T>(promise: Promise<T>, deadline: Deadline | undefined): Promise<T> {
  if (deadline === undefined) return promise;
  return withDeadline(promise, deadline.at - performance.now(), deadline.timeoutMs);
}
