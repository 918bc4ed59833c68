import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';
import type { LimitKey } from '../key-resolvers/index.js';
import type { MetBy } from '../limits/limit-feature.js';

/** What requests and calls say of themselves by which they meet a version of a limit. */
export interface RequestTrait {
  /** The option by which a limit has it and a call says it. */
  readonly option: string;
  /** The option whose function `metBy` may call, for explanations of what fails. */
  readonly calls: string;
  /** Finds it in a request. */
  readonly by: BoundKey;
  /** By what those who say this meet the limit of a name. Throws `RateLimitArgumentError`. */
  metBy(said: string | undefined, limit: string): MetBy;
  /** What explanations show of it; nothing if it is not known. */
  shown(metBy: MetBy): Readonly<Record<string, unknown>> | undefined;
}

/** Binds the key of an option. */
export type BindKey = (key: LimitKey, location: string, option: string) => BoundKey;
