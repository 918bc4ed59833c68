import type { RequestParts, RequestReader } from './request-reader.js';

const NOTHING: RequestParts = Object.freeze({});

/** The reader for transports without one. It returns no request and no response. */
export const unreadReader: RequestReader = { transport: '', read: () => NOTHING };

/** Returns true if no reader has read these parts. The call may well have what they lack. */
export function isUnread(parts: RequestParts): boolean {
  return parts === NOTHING;
}
