import { createStoreStack, type StoreSettings, type StoreStack } from '../../../lib/nest/store-stack.js';
import { freshPrefix } from '../limits/stores.js';

/** The store of an app that counts on Redis, with all its layers. It isn't open yet. */
export function appStore(redis: StoreSettings['redis'], more: Partial<StoreSettings> = {}): Promise<StoreStack> {
  return createStoreStack({
    redis,
    prefix: freshPrefix(),
    timeoutMs: 1000,
    maxKeys: 1000,
    report: () => undefined,
    ...more,
  });
}
