import { isRefusal } from '../../engine/limits/decision.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import { outOfTime, withDeadline } from '../redis/deadline.js';
import { chargesOf, takenOf } from './store-decision.js';
import type { Layer } from './layers/store-layer.js';
import type { Check, StoreDecision } from './store.js';

/** Entries of a check that are charged in one step: all of them or none. */
export interface Part {
  readonly entries: readonly CheckEntry[];
  /** Charges the entries, or only reads them if `peek`. With `most`, takes as many units as fit, up to this number. */
  ask(peek: boolean, most?: number): Promise<readonly StoreDecision[]>;
  /** Refunds the charge. The last part doesn't need this, since no later part can reject. */
  giveBack?(charged: readonly StoreDecision[]): Promise<void>;
  /**
   * The decisions of the entries after the refund.
   * @default the entries are read again
   */
  afterwards?(charged: readonly StoreDecision[]): readonly StoreDecision[];
}

/** The time by which the whole check must be done, in milliseconds of the process's clock, and its total time for error messages. */
interface Deadline {
  readonly at: number;
  readonly timeoutMs: number;
}

/**
 * Charges the parts of a check one after another, or reads them at once if `peek`. If a part rejects, the parts before it are refunded and
 * those after it are only read. If a part fails, all earlier charges are refunded as well. With `upTo`, a part with fewer units left than
 * the earlier parts took makes these refund the difference. The decisions are in the order of `entries`.
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
    for (const [index, part] of parts.entries()) {
      if (!charges) {
        const rest = parts.slice(index);
        await Promise.all(rest.map(async (each) => answers.set(each, await each.ask(true, most))));
        break;
      }
      const decisions = await part.ask(false, most);
      answers.set(part, decisions);
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
    // The check may be out of time. Units that can't be refunded expire on their own.
    void giveBack().catch(() => undefined);
    throw error;
  }
  const all = new Map<CheckEntry, StoreDecision>();
  for (const part of parts) part.entries.forEach((entry, index) => all.set(entry, answers.get(part)![index]!));
  return entries.map((entry) => all.get(entry)!);
}

/** A store that decides a part of a check, in the same way as the whole check, and takes back its charge. */
type PartStore = Pick<Layer, 'decided' | 'refund'>;

/** The part of a check that a store decides, in the same way as the whole check. Its charge can be refunded. */
export function partOf(
  store: PartStore,
  entries: readonly CheckEntry[],
  { refundable = false, hold = false, waits = false }: Pick<Check, 'refundable' | 'hold' | 'waits'>,
): Part {
  return {
    entries,
    ask: (peek, most) => store.decided({ ...takeOf(entries, most), peek, refundable, hold, waits }),
    giveBack: (charged) => store.refund(chargesOf(entries, charged)),
  };
}

/** Decides a check in two stores: the entries of `first` before all others. */
export function decideInTwo(
  check: Check,
  first: readonly CheckEntry[],
  firstStore: PartStore,
  otherStore: PartStore,
): Promise<StoreDecision[]> {
  const { entries, peek = false, upTo } = check;
  const others = entries.filter((entry) => !first.includes(entry));
  const parts = [partOf(firstStore, first, { ...check, refundable: true }), partOf(otherStore, others, check)];
  return allOrNothing(entries, parts, peek, undefined, upTo);
}

/** The entries of a check that takes as many units as fit, at most these. */
export function takeOf(entries: readonly CheckEntry[], most: number | undefined): Pick<Check, 'entries' | 'upTo'> {
  if (most === undefined) return { entries };
  return { entries: entries.map((entry) => ({ ...entry, cost: most })), upTo: true };
}

/** Refunds the units that a part took beyond a number. */
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
  // If the check fails in the meantime, only the rest is refunded.
  answers.set(part, rest);
  await part.giveBack?.(more);
}

async function inTime<T>(promise: Promise<T>, deadline: Deadline | undefined): Promise<T> {
  if (deadline === undefined) return promise;
  return withDeadline(promise, deadline.at - performance.now(), deadline.timeoutMs, outOfTime);
}
