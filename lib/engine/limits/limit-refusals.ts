import type { Algorithm } from '../algorithms/algorithm.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { optionMessages } from '../errors/messages/options.js';

/** Throws for options that belong to another algorithm. Unknown options are left to the caller. */
export function refuseForeignOptions(options: AlgorithmOptions, algorithm: Algorithm, location: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (option === 'algo' || value === undefined || Object.hasOwn(algorithm.options, option)) continue;
    const owners = algorithms.withOption(option);
    if (owners.length === 0) continue;
    throw new RateLimitConfigError(
      optionMessages.at(location, optionMessages.foreign(option, algorithm.name, owners)),
      { code: 'SLUICE_UNSUPPORTED_OPTION' },
    );
  }
}
