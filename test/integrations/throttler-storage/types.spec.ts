import { expect, it } from '@jest/globals';
import type { ThrottlerStorage } from '@nestjs/throttler';
import { RateLimitConfigError } from '../../../lib/index.js';
import {
  SluiceThrottlerStorage,
  type SluiceThrottlerStorageOptions,
} from '../../../lib/integrations/throttler-storage/index.js';

it('has the type of throttler', () => {
  const storage: ThrottlerStorage = new SluiceThrottlerStorage({ redis: 'redis://localhost' });
  expect(storage).toBeInstanceOf(SluiceThrottlerStorage);
});

it.each([
  [undefined, 'SluiceThrottlerStorage: expected an object'],
  ['redis://localhost', 'SluiceThrottlerStorage: expected an object'],
  [{}, 'SluiceThrottlerStorage.redis: expected a URL'],
  [{ redis: 'localhost' }, 'SluiceThrottlerStorage.redis: expected a URL'],
  [{ redis: 'redis://localhost', timeot: 5 }, "SluiceThrottlerStorage: unknown option 'timeot'"],
  [{ redis: 'redis://localhost', timeout: '2h' }, 'SluiceThrottlerStorage.timeout: expected at most 1 hour'],
  [{ redis: 'redis://localhost', timeout: 'soon' }, 'SluiceThrottlerStorage.timeout: expected milliseconds'],
  [{ redis: 'redis://localhost', prefix: 'a{b}' }, 'SluiceThrottlerStorage.prefix: expected a string'],
  [{ redis: 'redis://localhost', maxKeys: 0 }, 'SluiceThrottlerStorage.maxKeys: expected a whole number >= 1'],
])('refuses %j', (options, message) => {
  const make = () => new SluiceThrottlerStorage(options as SluiceThrottlerStorageOptions);
  expect(make).toThrow(RateLimitConfigError);
  expect(make).toThrow(message);
});
