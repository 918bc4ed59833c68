import { assertKey } from '../limits/arguments.js';
import { type Asked, askedOf, type ConsumeOptions } from '../limits/consume-options.js';
import { callEntries, callEntry } from '../rules/resolve/call-entries.js';
import { decide } from '../stores/decide.js';
import { openDecision } from '../stores/store-decision.js';
import { type CalledLimit, isNested } from './called-limit.js';
import { CallerAnswer, levelDecision, ownDecision } from './caller-answer.js';
import { decideEnforced } from '../stores/enforced-entries.js';
import type { LeasedDecision } from './lease.js';

/** Takes units of a limit, and of all limits it is within, if they fit now; or only looks whether they would. */
export function consume(
  limit: CalledLimit,
  key: string,
  given: number | ConsumeOptions | undefined,
  peek: boolean,
): Promise<LeasedDecision> {
  try {
    const { rule, store, queues } = limit;
    assertKey(key);
    const asked = askedOf(given, rule);
    if (isNested(limit, asked.within)) return consumeLevels(limit, key, asked, peek);
    const entry = callEntry(rule, key, asked.cost, asked, peek);
    const entries = [entry];
    const answer = new CallerAnswer(ownDecision, entries, store, queues, peek);
    if (entry.limit.off) answer.decided([openDecision(entry.limit)]);
    else decide(store, { entries, peek }, answer);
    return answer.promise();
  } catch (error) {
    return Promise.reject(error);
  }
}

function consumeLevels(
  { rule, store, queues }: CalledLimit,
  key: string,
  asked: Asked,
  peek: boolean,
): Promise<LeasedDecision> {
  const entries = callEntries(rule, key, asked, peek);
  const answer = new CallerAnswer(levelDecision, entries, store, queues, peek);
  decideEnforced(store, { entries, peek }, answer);
  return answer.promise();
}
