/**
 * A storage for @nestjs/throttler that counts on Redis, for apps that stay with it.
 * @module nestjs-sluice/throttler-storage
 */
export { SluiceThrottlerStorage, type SluiceThrottlerStorageOptions } from './sluice-throttler-storage.js';
export type { ThrottlerRecord } from './hits.js';
