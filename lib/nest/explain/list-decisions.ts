import { jsonCopy } from '../../engine/util/objects.js';
import type { Lists } from '../../app/overrides/lists/lists.js';
import type { ListedEntry } from '../../app/overrides/lists/list.js';
import type { AskedLimit } from './asked-limit.js';
import type { ExplainedDecision, ExplainedOutcome } from './explanation.js';

/** The client to look up in lists for a request. */
export interface AskingClient {
  /** The address of the client, if known. */
  readonly address: string | undefined;
  /** True if the address is checked before any limit. */
  readonly isChecked: boolean;
}

/** Calls from code have no address. */
export const CODE: AskingClient = { address: undefined, isChecked: false };

/** Adds the list entry to a limit's check if it decides instead of the limit. */
export function withList(asked: AskedLimit, lists: Lists, { address }: AskingClient): AskedLimit {
  const { status, limit, identity } = asked;
  if (identity === undefined || status === 'off') return asked;
  const list = lists.deciding(limit, identity, address);
  if (list === undefined) return asked;
  return { ...asked, list, status: status === 'asked' ? 'listed' : status };
}

/** The decision of an entry in place of a limit. A denial lasts until the list is changed. */
export function listDecision({ list }: ListedEntry): ExplainedDecision {
  const allowed = list === 'allow';
  return { allowed, retryAfterMs: allowed ? 0 : null, delayMs: 0 };
}

/** The outcome of a request whose address is denied at all limits. */
export function deniedAddress(lists: Lists, { address, isChecked }: AskingClient): ExplainedOutcome | undefined {
  const list = address === undefined || !isChecked ? undefined : lists.refusing(address);
  return list && { verdict: 'denied', refusedBy: [], retryAfterMs: null, delayMs: 0, list: jsonCopy(list) };
}
