import type { ExecutionContext } from '@nestjs/common';
import type { RequestParts } from '../transports/request-reader.js';

/** What a key resolver gives: the identity, of a number its decimal text, or nothing if the request has none. */
export type ResolvedKey = string | number | bigint | null | undefined;

/** An injectable class that says whom a request counts for. */
export interface KeyResolver {
  /** The identity, such as `tenant:42`. Nothing, or an empty string, leaves the matter to `onMissingKey`. */
  resolve(context: ExecutionContext): ResolvedKey | Promise<ResolvedKey>;
}

/** A function that says whom a request counts for. Its string, or the decimal text of its number, is the identity as it is. */
export type KeyFunction = (context: ExecutionContext) => ResolvedKey | Promise<ResolvedKey>;

/** A key resolver at work. */
export type Identify = (context: ExecutionContext, parts: RequestParts) => ResolvedKey | Promise<ResolvedKey>;
