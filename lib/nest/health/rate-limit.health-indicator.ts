import { Inject, Injectable, Optional } from '@nestjs/common';
import { CompiledLimit } from '../../engine/limits/compiled-limit.js';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { RateLimitSettings } from '../../app/config/settings.js';
import { RATE_LIMIT_REDIS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../../app/config/tokens.js';
import type { Decision } from '../../engine/limits/decision.js';
import { isCluster } from '../../storage/redis/client.js';
import type { Connection } from '../../storage/redis/connection.js';
import { isMasterOfSentinels } from '../../storage/redis/sentinels.js';
import type { StoreLayer } from '../../storage/stores/layers/store-layer.js';

/** The statuses of `@nestjs/terminus`; it supports `'degraded'` from version 12 on. */
export type RateLimitHealthStatus = 'up' | 'degraded' | 'down';

/** The options of the report. */
export interface RateLimitHealthOptions<Status extends RateLimitHealthStatus = RateLimitHealthStatus> {
  /**
   * The status to report while the store fails: `'up'`, since the app still responds; `'degraded'` with `@nestjs/terminus` 12, which older
   * versions leave out of their response; or `'down'`, for which terminus responds with 503, for apps that need the store, such as those
   * with `onStoreError: 'deny'`.
   * @default 'up'
   */
  whileFailing?: Status | undefined;
}

/** The health of the store. */
export interface RateLimitHealth<Status extends RateLimitHealthStatus = RateLimitHealthStatus> {
  /** `'up'`, or `whileFailing` while the store fails. */
  status: 'up' | Status;
  /** The place where decisions are currently made. */
  source: Decision['source'];
  /** The problem, if there is one. It contains no host name. */
  message?: string | undefined;
}

const STATUSES: readonly RateLimitHealthStatus[] = ['up', 'degraded', 'down'];
const FAILING: Decision['source'] = 'fallback';
/** A key that no limit uses; probing writes nothing. */
const PROBE = 'health';

/**
 * Reports the state of the store to health checks. It is made for `@nestjs/terminus`, which need not be installed: `health.check([() =>
 * limits.isHealthy('rate-limits')])`.
 */
@Injectable()
export class RateLimitHealthIndicator {
  private readonly limit = new CompiledLimit(
    { algo: 'fixed-window', rate: 1, interval: '1s' },
    { location: PROBE, name: PROBE, namespace: '@health' },
  );

  /** @internal */
  constructor(
    @Inject(RATE_LIMIT_STORE) private readonly store: StoreLayer,
    @Optional() @Inject(RATE_LIMIT_REDIS) private readonly redis: Connection | undefined,
    @Inject(RATE_LIMIT_SETTINGS) private readonly settings: Pick<RateLimitSettings, 'timeoutMs'>,
  ) {}

  /**
   * Calls the store, within the `timeout` of the module. Never rejects because of the store; rejects with `RateLimitArgumentError` for an
   * invalid option.
   *
   * @param key the name under which terminus shows the result
   */
  async isHealthy<const Key extends string, const Status extends RateLimitHealthStatus = 'up'>(
    key: Key,
    { whileFailing = 'up' as Status }: RateLimitHealthOptions<Status> = {},
  ): Promise<Record<Key, RateLimitHealth<Status>>> {
    if (!STATUSES.includes(whileFailing)) {
      throw new RateLimitArgumentError(messages.wrongStatus(whileFailing, STATUSES));
    }
    const [source, isMaster] = await Promise.all([this.probe(), this.isMaster(), this.store.probe()]);
    const fails = source === FAILING || this.store.isBroken === true;
    let health: RateLimitHealth<Status> = { status: 'up', source };
    if (fails) health = { status: whileFailing, source: FAILING, message: messages.storeDown() };
    else if (isMaster === false) health = { status: whileFailing, source, message: messages.storeReplaced() };
    return { [key]: health } as Record<Key, RateLimitHealth<Status>>;
  }

  /** A master that was replaced keeps responding until it is demoted. */
  private async isMaster(): Promise<boolean | undefined> {
    const { redis } = this;
    return redis === undefined || isCluster(redis) ? undefined : isMasterOfSentinels(redis, this.settings.timeoutMs);
  }

  private async probe(): Promise<Decision['source']> {
    try {
      const entries = [{ limit: this.limit, identity: PROBE, cost: 1 }];
      const [decisions] = await this.store.check([{ entries, peek: true }]);
      return decisions?.[0]?.source ?? FAILING;
    } catch {
      return FAILING;
    }
  }
}
