import { assertKey } from '../limits/arguments.js';
import { type Asked, askedOf, type ConsumeOptions } from '../limits/consume-options.js';
import { decide } from '../stores/decide.js';
import { openDecision } from '../stores/store-decision.js';
import { type CalledLimit, isNested } from './called-limit.js';
import { CallerAnswer } from './caller-answer.js';
import { decideEnforced } from '../stores/enforced-entries.js';
import type { LeasedDecision } from './lease.js';
import { LevelAnswer } from './level-answer.js';
import { levelEntries, levelsOf } from './levels.js';

/** Takes units of a limit, and of all that it is within, if they fit now; or looks whether they would. */
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
    const { cost, priority } = asked;
    if (isNested(limit, asked.within)) return consumeLevels(limit, key, asked, peek);
    const met = rule.limitForCall(key, asked, peek);
    const entry = { limit: met, identity: key, cost, priority };
    const answer = new CallerAnswer(entry, peek, store, queues);
    if (met.off) answer.decided([openDecision(met)]);
    else decide(store, { entries: [entry], peek }, answer);
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
  const entries = levelEntries(levelsOf(rule, key, asked.within), asked);
  const answer = new LevelAnswer(entries, peek, store, queues);
  decideEnforced(store, { entries, peek }, answer);
  return answer.promise();
}
