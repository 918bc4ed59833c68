import { algorithms } from '../../engine/algorithms/index.js';
import { isCommon, isDefault } from './limit-options.js';
import { isModuleOption } from './module-option-names.js';

/** The owner of an option that is unknown in some place, for messages; `undefined` if it is unknown everywhere. */
export function ownerOfOption(option: string): string | undefined {
  if (isCommon(option)) return isDefault(option) ? "a limit, or of the module's 'defaults'" : 'a limit';
  if (option === 'algo' || algorithms.withOption(option).length > 0) return 'a limit';
  return isModuleOption(option) ? 'RateLimitModule' : undefined;
}
