import type { RequestParts, RequestReader } from './request-reader.js';

const NOTHING: RequestParts = Object.freeze({});

/** Stands in for the reader of a transport that has none: nothing is known of its calls. */
export const unreadReader: RequestReader = { transport: '', read: () => NOTHING };

/** Whether no reader has read these parts: what is missing there may well be part of the call. */
export function isUnread(parts: RequestParts): boolean {
  return parts === NOTHING;
}
