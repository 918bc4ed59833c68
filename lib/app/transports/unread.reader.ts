import type { RequestParts, RequestReader } from './request-reader.js';

const NOTHING: RequestParts = Object.freeze({});

/** The reader of transports without one: nothing is known of their calls. */
export const unreadReader: RequestReader = { transport: '', read: () => NOTHING };

/** Whether no reader has read these parts: what is missing may well exist in the call. */
export function isUnread(parts: RequestParts): boolean {
  return parts === NOTHING;
}
