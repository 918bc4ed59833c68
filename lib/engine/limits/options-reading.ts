import type { Algorithm, Parameters } from '../algorithms/algorithm.js';
import { algorithms, type AlgorithmOptions } from '../algorithms/index.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { optionMessages } from '../errors/messages/options.js';
import { refuseForeignOptions } from './limit-refusals.js';

/** What the options of an algorithm say of a limit, wherever it is declared. */
export interface OptionsReading {
  readonly algorithm: Algorithm;
  readonly parameters: Parameters;
  /** The name of a limit that does not set its own. */
  readonly defaultName: string;
}

/** Reads the options of an algorithm. Throws `RateLimitConfigError`. */
export function readOptionsOf(options: AlgorithmOptions, location: string): OptionsReading {
  const algorithm = algorithms.for(options);
  if (algorithm === undefined) {
    const message = messages.unknownAlgorithm(location, options.algo, algorithms.names);
    throw new RateLimitConfigError(options.algo === undefined ? optionMessages.hinted(message, options) : message);
  }
  refuseForeignOptions(options, algorithm, location);
  const parameters = algorithm.compile(options as never, location);
  return { algorithm, parameters, defaultName: algorithm.defaultName(options as never) };
}
