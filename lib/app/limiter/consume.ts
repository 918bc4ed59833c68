import { askMessages } from '../../engine/errors/messages/calls.js';
import { assertKey } from '../../engine/limits/arguments.js';
import {
  type Asked,
  askedOf,
  type ConsumeOptions,
  readUnits,
  UP_TO_OPTIONS,
} from '../../engine/limits/consume-options.js';
import { callEntries, callEntry } from '../rules/resolve/call-entries.js';
import { decideEnforced } from '../../storage/stores/decide.js';
import { openDecision, toCallerDecision } from '../../storage/stores/store-decision.js';
import { type CalledLimit, isNested, unsupportedCall } from './called-limit.js';
import { CallerAnswer, levelDecision, ownDecision, refuseHeldUnits, taking } from './caller-answer.js';
import type { LeasedDecision } from './lease.js';

/** Takes units of a limit and all of its ancestors if they fit now; with `peek`, only reports if they would. */
export function consume(
  limit: CalledLimit,
  key: string,
  given: number | ConsumeOptions | undefined,
  peek: boolean,
): Promise<LeasedDecision> {
  try {
    assertKey(key);
    const decision = peek ? undefined : decidedAtOnce(limit, key, given);
    if (decision !== undefined) return Promise.resolve(decision);
    return ask(limit, key, askedOf(given, limit.rule, UP_TO_OPTIONS), peek).promise();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Takes units of a limit that is counted in this process, synchronously. Throws the errors with which `consume` rejects. */
export function consumeSync(
  limit: CalledLimit,
  key: string,
  given: number | ConsumeOptions | undefined,
): LeasedDecision {
  const { rule, store } = limit;
  assertKey(key);
  // Units that were taken in advance from Redis are also decided synchronously, but not always.
  const decision = limit.countedHere === rule.limit ? decidedAtOnce(limit, key, given) : undefined;
  if (decision !== undefined) return decision;
  for (const each of rule.isNested ? [rule, ...rule.ancestors] : [rule]) {
    if (!store.decidesAtOnce(each.limit)) throw unsupportedCall(askMessages.notAtOnce(each.name));
  }
  limit.countedHere = rule.limit;
  return ask(limit, key, askedOf(given, rule, UP_TO_OPTIONS), false).atOnce();
}

/** The decision on a number of units, if it is simple and made in this process; otherwise `undefined`. */
function decidedAtOnce(
  called: CalledLimit,
  key: string,
  given: number | ConsumeOptions | undefined,
): LeasedDecision | undefined {
  if (typeof given === 'object') return undefined;
  const { rule, store } = called;
  const cost = readUnits(given, rule);
  const limit = rule.limitFor(key);
  if (!limit.isPlain || called.countedElsewhere === limit) return undefined;
  const decision = store.decideOne(limit, key, cost);
  if (decision !== undefined) return toCallerDecision(decision, limit);
  // A feature may have units in this process, but not always.
  if (limit.features === undefined && !store.decidesAtOnce(limit)) called.countedElsewhere = limit;
  return undefined;
}

/** Calls the store, which may respond synchronously. */
function ask(limit: CalledLimit, key: string, asked: Asked, peek: boolean): CallerAnswer<LeasedDecision> {
  const { rule, store, queues } = limit;
  if (asked.upTo === true) return take(limit, key, asked, peek);
  if (isNested(limit, asked.within)) {
    const entries = callEntries(rule, key, asked, peek);
    const answer = new CallerAnswer(levelDecision, entries, store, queues, peek);
    decideEnforced(store, { entries, peek }, answer);
    return answer;
  }
  const entry = callEntry(rule, key, asked.cost, asked, peek);
  const entries = [entry];
  const answer = new CallerAnswer(ownDecision, entries, store, queues, peek);
  if (entry.limit.off) answer.decided([openDecision(entry.limit)]);
  else store.decide({ entries, peek }, answer);
  return answer;
}

/** Takes as many units as are available, up to `upTo`. */
function take(limit: CalledLimit, key: string, asked: Asked, peek: boolean): CallerAnswer<LeasedDecision> {
  const { rule, store, queues } = limit;
  const isOfLevels = isNested(limit, asked.within);
  const entries = isOfLevels ? callEntries(rule, key, asked, peek) : [callEntry(rule, key, asked.cost, asked, peek)];
  refuseHeldUnits(entries);
  const answer = new CallerAnswer(taking(isOfLevels ? levelDecision : ownDecision), entries, store, queues, peek);
  decideEnforced(store, { entries, peek, upTo: true }, answer);
  return answer;
}
