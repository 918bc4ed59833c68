/**
 * Limits calls of any method of a provider.
 * @module nestjs-sluice/methods
 */
export { Limited } from './limited.decorator.js';
export type {
  LimitedDecorator,
  LimitedMethod,
  LimitedOptions,
  MayReturnUndefined,
  OnLimit,
  SkippedDecorator,
} from './limited-options.js';
