import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/**
 * Maximum work of one call, and of one check. The unit is the work of a check of a plain counter: about a microsecond of the server, which
 * does nothing else in that time.
 */
export const MAX_WORK = 2500;

/** The work of a check of a limit for the server, in checks of a plain counter. */
export function workOf({ algorithm, parameters, features = [], together }: CompiledLimit): number {
  let work = algorithm.work?.(parameters) ?? 1;
  for (const { script } of features) work += script?.work ?? 0;
  return work + (together?.work ?? 0);
}
