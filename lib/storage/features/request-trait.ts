import type { ExecutionContext } from '@nestjs/common';
import type { CompiledLimit, MetBy } from '../../engine/limits/compiled-limit.js';
import type { LimitKey } from '../../engine/limits/limit-key.js';
import type { Awaitable } from '../../engine/util/awaitable.js';

/** What requests and calls say of themselves by which they meet a version of a limit. `Key` is a key that was bound. */
export interface RequestTrait<Key> {
  /** The option by which a limit has it and a call says it. */
  readonly option: string;
  /** The option whose function `metBy` may call, for explanations of what fails. */
  readonly calls: string;
  /** Finds it in a request: a key, or a function of the app, which may find nothing. */
  readonly by: Key | ((context: ExecutionContext) => Awaitable<unknown>);
  /**
   * By what those who say this meet a limit. Throws `RateLimitArgumentError`.
   *
   * @param said `null` if a function found nothing in a request, `undefined` if a call does not say it
   * @param looks whether a call only looks
   */
  metBy(said: unknown, limit: CompiledLimit, looks?: boolean): MetBy;
  /** What explanations show of it; nothing if it is not known. */
  shown?(metBy: MetBy): Readonly<Record<string, unknown>> | undefined;
}

/** Binds the key of an option. */
export type BindKey<Key> = (key: LimitKey, location: string, option: string) => Key;
