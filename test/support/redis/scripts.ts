import { OVERRIDES_SCRIPT } from '../../../lib/app/overrides/overrides-script.generated.js';
import { FOLD_SCRIPT } from '../../../lib/console/telemetry/fold-script.generated.js';
import { decisionScript } from '../../../lib/storage/stores/redis/script.generated.js';

/** The Lua that the library sends to Redis: what decides checks, changes overrides, and sums up what the console shows. */
export const scripts = { decisions: decisionScript(), overrides: OVERRIDES_SCRIPT, console: FOLD_SCRIPT } as const;
