import type { CompiledLimit } from '../../engine/limits/compiled-limit.js';

/**
 * The most work of one call, and of one check. A unit is what a check of a plain counter takes, about a microsecond of the server, which
 * does nothing else meanwhile.
 */
export const MAX_WORK = 2500;

/** How much a check of a limit asks of the server, in checks of a plain counter. */
export function workOf({ algorithm, parameters, features = [], together }: CompiledLimit): number {
  let work = algorithm.work?.(parameters) ?? 1;
  for (const { script } of features) work += script?.work ?? 0;
  return work + (together?.work ?? 0);
}
