import type { RequestLike } from '../../app/transports/request-reader.js';
import { asObject } from '../../engine/util/objects.js';

/** What the MCP SDK passes to handlers beside the message, and what frameworks add to it. */
export interface CallExtra {
  readonly sessionId?: unknown;
  /** The request of a framework, which knows the address. */
  readonly request?: unknown;
  readonly rawRequest?: unknown;
  readonly req?: unknown;
  /** What the SDK keeps of the request. */
  readonly requestInfo?: { readonly headers?: RequestLike['headers'] };
  readonly authInfo?: { readonly clientId?: unknown; readonly extra?: { readonly user?: unknown } };
  /** Aborts when the call is cancelled. */
  readonly signal?: { readonly addEventListener?: unknown };
}

/**
 * Returns an argument of a handler if it is what the SDK passes. The message itself is written by the client, which could name any
 * address, user and session there; but it cannot send a function.
 */
export function asCallExtra(value: unknown): CallExtra | undefined {
  const extra = asObject<CallExtra>(value);
  return typeof asObject<NonNullable<CallExtra['signal']>>(extra?.signal)?.addEventListener === 'function'
    ? extra
    : undefined;
}
