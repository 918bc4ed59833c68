import type {
  CommonLimitOptions,
  Count,
  OnMissingKey,
  OnMissingReader,
  Phase,
} from '../config/common-limit-options.js';
import type { AnchorFunction } from '../config/limit-definition.js';
import type { OnceLogger } from '../errors/once-logger.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import type { IdentifyAddress } from '../key-resolvers/ip.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';
import type { SharePlan } from './share-terms.js';

/** Finds the tenants that share the units of a limit. */
export interface RuleShare extends SharePlan {
  readonly by: BoundKey;
}

/** What a rule is made of besides its limit. */
export interface RuleSettings {
  readonly key: BoundKey;
  /** Whether the limit itself names it; else code may pass any. */
  readonly hasKey?: boolean;
  /**
   * How many leading bits of an IPv6 address tell clients apart.
   * @default 64
   */
  readonly ipv6Prefix?: number;
  /** Whom it counts if the key finds nobody. */
  readonly byAddress: IdentifyAddress;
  readonly onMissingKey: OnMissingKey;
  /** Whether the app has said that the address counts where a key finds nobody. */
  readonly addressIsMeant?: boolean;
  readonly onMissingReader: OnMissingReader;
  readonly phase: Phase;
  readonly cost: NonNullable<CommonLimitOptions['cost']>;
  /** Whether the cost was given, so that a request may turn out to cost something else. */
  readonly hasCost: boolean;
  readonly priority: CommonLimitOptions['priority'];
  /** Whether units of it are taken in advance, where there is Redis. */
  readonly prefetches?: boolean;
  /** Who shares its units. */
  readonly share?: RuleShare | undefined;
  /** What says where its windows begin, if that depends on the request. */
  readonly anchor?: AnchorFunction | undefined;
  readonly count: Count;
  readonly skip: CommonLimitOptions['skip'];
  readonly answer: RefusalAnswer;
  /** Whether each route has a counter of its own. */
  readonly perRoute: boolean;
  /** Whether its name is that of its algorithm and rate. */
  readonly unnamed: boolean;
  /** Shared by all rules of an app, since a function can make new ones for each request. */
  readonly log: OnceLogger;
}

/** Limits of some identities, which differ from that of all others. */
export interface KeyedLimits {
  limitFor(identity: string): CompiledLimit;
}
