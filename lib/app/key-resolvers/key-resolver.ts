import type { ExecutionContext } from '@nestjs/common';
import type { RequestParts } from '../transports/request-reader.js';

/** What a key resolver returns: the identity (of a number, its decimal text), or nothing if the request has none. */
export type ResolvedKey = string | number | bigint | null | undefined;

/** An injectable class that finds the identity of a request. */
export interface KeyResolver {
  /** Returns the identity, such as `tenant:42`. For nothing or an empty string, `onMissingKey` decides. */
  resolve(context: ExecutionContext): ResolvedKey | Promise<ResolvedKey>;
}

/** A function that finds the identity of a request. Its string, or the decimal text of its number, is used unchanged. */
export type KeyFunction = (context: ExecutionContext) => ResolvedKey | Promise<ResolvedKey>;

/** A key resolver that has been bound. */
export type Identify = (context: ExecutionContext, parts: RequestParts) => ResolvedKey | Promise<ResolvedKey>;
