import type { RequestLike } from '../../app/transports/request-reader.js';
import { asObject } from '../../engine/util/objects.js';

/** The second argument of MCP handlers: the SDK's data about the call, plus whatever frameworks add to it. */
export interface CallExtra {
  readonly sessionId?: unknown;
  /** The framework's request, which has the address. */
  readonly request?: unknown;
  readonly rawRequest?: unknown;
  readonly req?: unknown;
  /** The SDK's copy of the request. */
  readonly requestInfo?: { readonly headers?: RequestLike['headers'] };
  readonly authInfo?: { readonly clientId?: unknown; readonly extra?: { readonly user?: unknown } };
  /** Aborts when the call is cancelled. */
  readonly signal?: { readonly addEventListener?: unknown };
}

/**
 * Returns an argument of a handler if the SDK passed it. The message itself comes from the client, which could put any address, user and
 * session there; but it can't send a function.
 */
export function asCallExtra(value: unknown): CallExtra | undefined {
  const extra = asObject<CallExtra>(value);
  return typeof asObject<NonNullable<CallExtra['signal']>>(extra?.signal)?.addEventListener === 'function'
    ? extra
    : undefined;
}
