import { moduleLogger } from '../errors/logger.js';
import { usageMessages } from '../errors/messages/usage.js';
import type { CompiledLimit } from '../limits/compiled-limit.js';

/** Warns of keys that have no record because a limit has too many: whoever reads records is told what is in no invoice. */
export function warnOfLeftOut({ name, usage }: CompiledLimit): void {
  moduleLogger.warn(usageMessages.leftOut(name, usage!.maxKeys ?? 0));
}
