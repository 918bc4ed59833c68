import { readSettings, type RateLimitSettings } from '../../../lib/app/config/settings.js';
import type { RateLimitModuleOptions } from '../../../lib/index.js';

/** Reads the options of the module as an app does that starts, without connecting to anything. Throws `RateLimitConfigError`. */
export function settingsOf(options: RateLimitModuleOptions): RateLimitSettings {
  return readSettings(options);
}
