import type {
  CommonLimitOptions,
  Count,
  OnMissingKey,
  OnMissingReader,
  Phase,
} from '../config/common-limit-options.js';
import type { RateFunction } from '../config/limits-by-request.js';
import type { OnceLogger } from '../../engine/errors/logger.js';
import type { RequestTrait } from '../../storage/features/request-trait.js';
import type { RefusalAnswer } from '../http/refusal-answer.js';
import type { IdentifyAddress } from '../key-resolvers/ip.js';
import type { BoundKey } from '../key-resolvers/key-resolver.factory.js';
import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/** The settings of a rule besides its limit. */
export interface RuleSettings {
  readonly key: BoundKey;
  /** Whether the limit itself sets its key; otherwise code may pass any. */
  readonly hasKey?: boolean;
  /**
   * The number of leading bits of an IPv6 address that identify a client.
   * @default 64
   */
  readonly ipv6Prefix?: number;
  /** The identity by address, for requests without a key. */
  readonly byAddress: IdentifyAddress;
  readonly onMissingKey: OnMissingKey;
  /** Whether the app has explicitly chosen the address for requests without a key. */
  readonly addressIsMeant?: boolean;
  readonly onMissingReader: OnMissingReader;
  readonly phase: Phase;
  readonly cost: NonNullable<CommonLimitOptions['cost']>;
  /** Whether a cost was set, so that the final cost of a request may differ. */
  readonly hasCost: boolean;
  readonly priority: CommonLimitOptions['priority'];
  /** An option that it has, because of which no limit can be within it. */
  readonly childless?: string | undefined;
  /** The trait of requests and calls by which they meet a version of it. */
  readonly trait?: RequestTrait<BoundKey> | undefined;
  readonly count: Count;
  readonly skip: CommonLimitOptions['skip'];
  readonly answer: RefusalAnswer;
  /** Whether each route has its own counter. */
  readonly perRoute: boolean;
  /** Whether its name is the default one, made of algorithm and rate. */
  readonly unnamed: boolean;
  /** The function that found its rate. */
  readonly rate?: RateFunction | undefined;
  /** Shared by all rules of an app, since a function can make new ones for each request. */
  readonly log: OnceLogger;
}

/** Limits of some identities, which differ from that of all others. */
export interface KeyedLimits {
  limitFor(identity: string): CompiledLimit;
}
