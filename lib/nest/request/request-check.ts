import { Inject, Injectable } from '@nestjs/common';
import { RATE_LIMIT_LISTS, RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import type { Lists } from '../../app/overrides/lists/lists.js';
import { requestEntries } from '../../app/rules/resolve/request-entries.js';
import type { RuleEntry } from '../../app/rules/resolve/resolve.js';
import type { Rule } from '../../app/rules/rule.js';
import type { Store } from '../../storage/stores/store.js';
import { type Awaitable, isPromise } from '../../engine/util/awaitable.js';
import { addressOf } from '../../app/transports/read-request.js';
import { clientClosedRequest } from './client-closed-request.js';
import type { LimitedRequest } from './limited-request.js';
import { PendingCheck } from './pending-check.js';

/** Checks a request against rules, in one atomic call of the store. */
@Injectable()
export class RequestCheck {
  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: Store,
    @Inject(RATE_LIMIT_LISTS) private readonly lists: Lists,
  ) {}

  /**
   * Asks the store without waiting for its answer. Returns `undefined` if none of the rules applies. Throws or rejects with the
   * refusal of a request without a key.
   */
  begin(request: LimitedRequest, rules: readonly Rule[]): Awaitable<PendingCheck | undefined> {
    if (rules.length === 0) return undefined;
    const { parts, mayReplaceLimits } = request;
    const entries = this.entries(request, rules);
    const address = this.lists.hasNetworks ? addressOf(parts) : undefined;
    if (!isPromise(entries)) return this.ask(request, entries, mayReplaceLimits, address);
    return entries.then((found) => {
      // While functions ran, the client may have left, and its address with it.
      refuseIfClosed(request, rules);
      return this.ask(request, found, mayReplaceLimits, address);
    });
  }

  /** What rules ask of the store for a request. Throws or rejects with the refusal of a request without a key. */
  entries(request: LimitedRequest, rules: readonly Rule[]): Awaitable<readonly RuleEntry[]> {
    const { context, parts } = request;
    refuseIfClosed(request, rules);
    request.apply(rules);
    return requestEntries(rules, context, parts);
  }

  /** Asks the store about entries of several calls at once. Units of all of them can be given back. */
  askTogether(entries: readonly RuleEntry[], request: LimitedRequest): PendingCheck | undefined {
    return this.ask(request, entries, true, this.lists.hasNetworks ? addressOf(request.parts) : undefined);
  }

  private ask(
    request: LimitedRequest,
    entries: readonly RuleEntry[],
    refundable: boolean,
    address: string | undefined,
  ): PendingCheck | undefined {
    if (entries.length === 0) return undefined;
    return new PendingCheck(entries, this.store, refundable || mayGiveBack(entries), address, request);
  }
}

/** Whether units of any entry may have to be given back. */
function mayGiveBack(entries: readonly RuleEntry[]): boolean {
  for (const { rule } of entries) if (rule.mayGiveBack) return true;
  return false;
}

/** Refuses a request whose client has left. */
function refuseIfClosed(request: LimitedRequest, rules: readonly Rule[]): void {
  if (request.isClosed && !rules.every(isShadow)) throw clientClosedRequest();
}

/** A shadow limit never refuses, whatever the reason. */
function isShadow({ limit }: Rule): boolean {
  return limit.shadow;
}
