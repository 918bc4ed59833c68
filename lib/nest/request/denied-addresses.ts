import { Inject, Injectable } from '@nestjs/common';
import { RATE_LIMIT_LISTS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import { type RateLimitSettings } from '../../app/config/settings.js';
import { ipIdentity } from '../../app/key-resolvers/ip.js';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import type { Lists } from '../../app/overrides/lists/lists.js';
import type { Layer } from '../../storage/stores/layers/store-layer.js';
import type { CheckAnswer, CheckOrigin } from '../../storage/stores/store.js';
import { isLost } from '../../app/transports/connection.js';
import { addressOf } from '../../app/transports/read-request.js';
import { clientClosedRequest } from './call-run.js';
import type { LimitedRequest } from './limited-request.js';

/** Rejects requests from addresses that lists for all limits deny, before any limit is checked. */
@Injectable()
export class DeniedAddresses {
  /** Represents all limits in reports of the rejection. */
  private readonly everything: CompiledLimit;

  constructor(
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: RateLimitSettings,
    @Inject(RATE_LIMIT_STORE) private readonly store: Layer,
    @Inject(RATE_LIMIT_LISTS) private readonly lists: Lists,
  ) {
    const { shadow } = settings;
    const options = { algo: 'fixed-window', rate: 1, interval: 1 } as const;
    this.everything = new CompiledLimit(options, { location: 'lists', name: '*', namespace: '@lists', shadow });
  }

  /** True if any addresses may be denied. */
  get mayRefuse(): boolean {
    return this.lists.mayRefuseAddresses;
  }

  /** Returns true if a request is denied for its address; `origin` reports the decision. Throws if the address was lost. */
  refuses({ parts }: Pick<LimitedRequest, 'parts'>, origin?: CheckOrigin): boolean {
    const { shadow, ipv6Prefix } = this.settings;
    const address = addressOf(parts);
    if (address === undefined) {
      if (!shadow && isLost(parts.request?.socket)) throw clientClosedRequest();
      return false;
    }
    if (!this.lists.refuses(address)) return false;
    const entry = { limit: this.everything, identity: ipIdentity(address, ipv6Prefix)!, cost: 1 };
    // The layer of lists decides synchronously, and the one above it reports the decision.
    this.store.decide({ entries: [entry], address, origin }, IGNORED);
    return !shadow;
  }
}

const IGNORED: CheckAnswer = { decided: () => undefined, failed: () => undefined };
