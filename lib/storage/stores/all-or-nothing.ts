import { isRefusal } from '../../engine/limits/check-result.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { withDeadline } from '../redis/deadline.js';
import { takenOf } from './store-decision.js';
import type { Check, StoreDecision } from './store.js';

/** Entries of a check that are charged in one step: all of them or none. */
export interface Part {
  readonly entries: readonly CheckEntry[];
  /** Charges the entries, or looks at them. `most`: takes as many units as fit, at most these. */
  ask(peek: boolean, most?: number): Promise<readonly StoreDecision[]>;
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
 * it are only looked at. If one fails, what was charged is given back, too. With `upTo`, a part that has fewer units than those before it
 * took has them give back the difference. The decisions are in the order of `entries`.
 */
export async function allOrNothing(
  entries: readonly CheckEntry[],
  parts: readonly Part[],
  peek: boolean,
  deadline?: Deadline,
  upTo = false,
): Promise<StoreDecision[]> {
  const answers = new Map<Part, readonly StoreDecision[]>();
  const charged: Part[] = [];
  let charges = !peek;
  let most = upTo ? entries[0]!.cost : undefined;
  const giveBack = () => Promise.all(charged.splice(0).map(async (part) => part.giveBack?.(answers.get(part)!)));
  try {
    for (const part of parts) {
      const decisions = await part.ask(!charges, most);
      answers.set(part, decisions);
      if (!charges) continue;
      if (!part.entries.some(({ limit }, index) => isRefusal(limit, decisions[index]!))) {
        const taken = most && takenOf(part.entries, decisions);
        if (taken !== undefined && taken < most!) {
          const returned = charged.map((before) => reduce(before, answers, taken));
          await inTime(Promise.all(returned), deadline);
          most = taken;
        }
        charged.push(part);
        continue;
      }
      charges = false;
      const refunded = [...charged];
      await inTime(giveBack(), deadline);
      await Promise.all(
        refunded.map(async (before) =>
          answers.set(before, before.afterwards?.(answers.get(before)!) ?? (await before.ask(true, most))),
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

/** The entries of a check that takes as many units as fit, at most these. */
export function takeOf(entries: readonly CheckEntry[], most: number | undefined): Pick<Check, 'entries' | 'upTo'> {
  if (most === undefined) return { entries };
  return { entries: entries.map((entry) => ({ ...entry, cost: most })), upTo: true };
}

/** Gives back what a part took beyond a number of units. */
async function reduce(part: Part, answers: Map<Part, readonly StoreDecision[]>, taken: number): Promise<void> {
  const before = answers.get(part)!;
  const more: StoreDecision[] = [];
  const rest: StoreDecision[] = [];
  for (const [index, decision] of before.entries()) {
    const { allowed, ticket, taken: all = taken, remaining, quota } = decision;
    const { algorithm, parameters } = part.entries[index]!.limit;
    const excess = all - taken;
    more.push({ ...decision, taken: excess });
    if (ticket !== undefined && algorithm.queue !== undefined) {
      more[index]!.ticket = algorithm.queue.ticketBefore(parameters, ticket, taken);
    }
    rest.push(
      allowed ? { ...decision, taken, remaining: Math.min(quota, remaining + excess) } : { ...decision, taken },
    );
  }
  // If the check fails meanwhile, only the rest is given back.
  answers.set(part, rest);
  await part.giveBack?.(more);
}

async function inTime<T>(promise: Promise<T>, deadline: Deadline | undefined): Promise<T> {
  if (deadline === undefined) return promise;
  return withDeadline(promise, deadline.at - performance.now(), deadline.timeoutMs);
}
