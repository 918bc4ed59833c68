import type { Lists } from '../overrides/lists/lists.js';
import type { ListedEntry } from '../overrides/lists/list.js';
import type { AskedLimit } from './asked-limit.js';
import type { ExplainedDecision, ExplainedOutcome } from './explanation.js';

/** Of whom lists are asked for a request. */
export interface AskingClient {
  /** The address of the client, if that is known. */
  readonly address: string | undefined;
  /** Whether the address is looked at before any limit is. */
  readonly isChecked: boolean;
}

/** Code has no address. */
export const CODE: AskingClient = { address: undefined, isChecked: false };

/** What becomes of a limit if an entry of a list decides in its place. */
export function withList(asked: AskedLimit, lists: Lists, { address }: AskingClient): AskedLimit {
  const { status, limit, identity } = asked;
  if (identity === undefined || status === 'off') return asked;
  const list = lists.deciding(limit, identity, address);
  if (list === undefined) return asked;
  return { ...asked, list, status: status === 'asked' ? 'listed' : status };
}

/** What an entry says in place of a limit. Who is refused is so until somebody changes the list. */
export function listDecision({ list }: ListedEntry): ExplainedDecision {
  const allowed = list === 'allow';
  return { allowed, retryAfterMs: allowed ? 0 : null, delayMs: 0 };
}

/** What a request gets whose address is refused, whatever it asks for. */
export function deniedAddress(lists: Lists, { address, isChecked }: AskingClient): ExplainedOutcome | undefined {
  const list = address === undefined || !isChecked ? undefined : lists.refusing(address);
  return list && { verdict: 'denied', refusedBy: [], retryAfterMs: null, delayMs: 0, list: plainEntry(list) };
}

/** An entry as JSON keeps it. */
export function plainEntry(entry: ListedEntry): ListedEntry {
  return JSON.parse(JSON.stringify(entry)) as ListedEntry;
}
