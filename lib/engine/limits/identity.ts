import { createHash } from 'node:crypto';
import type { ExecutionContext, Type } from '@nestjs/common';
import { text } from '../options/kinds.js';

/** The result of a key resolver: the key (a number is used as its decimal text), or nothing if the request has none. */
export type ResolvedKey = string | number | bigint | null | undefined;

/** An injectable class that finds the key of a request. */
export interface KeyResolver {
  /** Returns the key, such as `tenant:42`. For nothing or an empty string, `onMissingKey` applies. */
  resolve(context: ExecutionContext): ResolvedKey | Promise<ResolvedKey>;
}

/** A function that finds the key of a request. Its string, or the decimal text of its number, is used unchanged. */
export type KeyFunction = (context: ExecutionContext) => ResolvedKey | Promise<ResolvedKey>;

/**
 * The key by which a limit counts.
 * @useDeclaredType
 */
export type LimitKey = 'ip' | 'user' | 'global' | `header:${string}` | KeyFunction | Type<KeyResolver>;

/** The name of an HTTP header (RFC 9110). */
const HEADER_NAME = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const HEADER = new RegExp(`^header:(${HEADER_NAME})$`);

/** The forms of `key` that can be written as text. */
export const keyText = text("'ip', 'user', 'global' or 'header:<name>'", `^(ip|user|global|header:${HEADER_NAME})$`);

/** The name of the header in `header:<name>`; `undefined` for other keys. */
export function headerOfKey(key: unknown): string | undefined {
  return typeof key === 'string' ? HEADER.exec(key)?.[1] : undefined;
}

/**
 * Returns the identity that `key: 'header:<name>'` uses for a value, for calls that take a key, such as `setRate`, `deny` and `explain`:
 * `header:x-api-key:` and the SHA-256 of the value, in base64url.
 *
 * @param header the name of the header, in upper or lower case
 * @param value the value that a client sends
 */
export function headerIdentity(header: string, value: string): string {
  return `header:${header.toLowerCase()}:${createHash('sha256').update(value).digest('base64url')}`;
}

/**
 * The identity of requests with a `key`, for a name in an option: the value of a header is hashed unless it is already an identity.
 * `undefined` if the key never produces it.
 */
export function identityOfValue(key: unknown, value: string): string | undefined {
  if (key === 'ip' || key === 'user') return value.startsWith(`${key}:`) ? value : undefined;
  const header = headerOfKey(key);
  if (header === undefined || value.startsWith(`header:${header.toLowerCase()}:`)) return value;
  return headerIdentity(header, value);
}

/** Identities up to this length are stored in plain text. Longer ones are hashed, which bounds their memory. */
export const LONGEST_IDENTITY = 64;

/** The hash of an identity. It is based on UTF-16, because UTF-8 would merge unpaired surrogates. */
export function hashIdentity(identity: string): string {
  return createHash('sha256').update(identity, 'utf16le').digest('base64url');
}

/** An identity as the key of a map: bounded, and different for different identities. */
export function boundedIdentity(identity: string): string {
  return identity.length <= LONGEST_IDENTITY ? `\n${identity}` : `\r${hashIdentity(identity)}`;
}

/** Identities that appear in Redis keys as plain text. All others are hashed, with a prefix that none of these contains. */
const PLAIN = /^[\w.:@-]{1,64}$/;

/** An identity as part of a Redis key: bounded, made of plain characters, and different for different identities. */
export function plainIdentity(identity: string): string {
  return PLAIN.test(identity) ? identity : `#${hashIdentity(identity)}`;
}
