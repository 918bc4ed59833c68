import type { ExecutionContext } from '@nestjs/common';
import type { CompiledLimit, MetBy } from '../../engine/limits/compiled-limit.js';
import type { LimitKey } from '../../engine/limits/identity.js';
import type { Awaitable } from '../../engine/util/awaitable.js';

/** A property of requests and calls that selects a version of a limit. `Key` is a key that was bound. */
export interface RequestTrait<Key> {
  /** The name of the option, on the limit and on calls. */
  readonly option: string;
  /** The option whose function `metBy` may call, for error messages. */
  readonly calls: string;
  /** Finds it in a request: a key, or a function of the app, which may return nothing. */
  readonly by: Key | ((context: ExecutionContext) => Awaitable<unknown>);
  /**
   * The version of a limit for requests and calls with this value. Throws `RateLimitArgumentError`.
   *
   * @param said `null` if a function found nothing in a request, `undefined` if a call doesn't set it
   * @param looks true if a call only reads
   */
  metBy(said: unknown, limit: CompiledLimit, looks?: boolean): MetBy;
  /** The value for explanations; `undefined` if it is unknown. */
  shown?(metBy: MetBy): Readonly<Record<string, unknown>> | undefined;
}

/** Binds the key of an option. */
export type BindKey<Key> = (key: LimitKey, location: string, option: string) => Key;
