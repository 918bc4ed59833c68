import { configError } from '../../engine/errors/errors.js';
import { methodMessages } from '../../engine/errors/messages/app-code.js';
import { isCost } from '../../engine/limits/arguments.js';
import { duration, knownOptions, wrongOption } from '../../engine/options/check-options.js';
import type { Duration } from '../../engine/options/values.js';

/** The outcome of a call that exceeds the limit. */
export type OnLimit = 'throw' | 'wait' | 'skip';

/** A method that can have a limit: it returns a promise, since a limit may have to be read from Redis. */
// oxlint-disable-next-line typescript/no-explicit-any -- any arguments and any result
export type LimitedMethod = (...args: any[]) => Promise<any>;

/** How calls of a method are limited. */
export interface LimitedOptions<Method extends LimitedMethod = LimitedMethod> {
  /**
   * Returns the key of the counter, such as `user:42`, from the arguments of the method.
   * @default one counter for all calls
   */
  key?: ((...args: Parameters<Method>) => string) | undefined;
  /**
   * The units that a call takes: a whole number >= 0, or a function of the method's arguments that returns one.
   * @default the `cost` of the limit, or 1
   */
  cost?: number | ((...args: Parameters<Method>) => number) | undefined;
  /**
   * The outcome of a call that exceeds the limit. `'throw'` rejects with `RateLimitExceededException`. `'wait'` runs the method
   * when it has its turn, in the order of the calls of this process for the key. `'skip'` resolves to `undefined`. With `'throw'`
   * and `'skip'` the method doesn't run.
   * @default 'throw'
   */
  onLimit?: OnLimit | undefined;
  /**
   * With `'wait'`, the longest wait: milliseconds or a duration such as `'5s'`, at most 1 year. The call rejects with
   * `RateLimitTimeoutError` as soon as it is known to exceed it.
   * @default no timeout
   */
  timeout?: Duration | undefined;
  /** With `'wait'`, returns a signal that ends the wait when it aborts, from the arguments of the method. */
  signal?: ((...args: Parameters<Method>) => AbortSignal | undefined) | undefined;
}

/** Decorates methods that return a promise. */
export type LimitedDecorator<Method extends LimitedMethod> = <M extends Method>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** Decorates methods whose promise may be one of `undefined`. */
export type SkippedDecorator<Method extends LimitedMethod> = <M extends Method>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & MayReturnUndefined<M>,
) => void;

/** Refuses a method that is skipped, and whose return type lacks `undefined`. */
export type MayReturnUndefined<M extends LimitedMethod> =
  undefined extends Awaited<ReturnType<M>>
    ? unknown
    : {
        /** No method has this property, so the compiler shows its name as the error. */
        readonly "return type: add undefined, for calls that onLimit: 'skip' skips": never;
      };

const KNOWN = ['key', 'cost', 'onLimit', 'timeout', 'signal'] as const satisfies readonly (keyof LimitedOptions)[];
const ON_LIMIT: readonly unknown[] = ['throw', 'wait', 'skip'] satisfies readonly OnLimit[];

/** Options that have been checked. */
export type LimitedSettings = Omit<LimitedOptions, 'onLimit'> & { readonly onLimit: OnLimit };

/** Reads the options of `@Limited`. Throws `RateLimitConfigError`. */
export function readLimitedOptions(given: unknown, location: string): LimitedSettings {
  const options = knownOptions<LimitedOptions>(location, given, KNOWN);
  const { key, cost, onLimit = 'throw', timeout, signal } = options;
  const refuse = (option: string, value: unknown, expected: string): never => {
    throw wrongOption(location, option, value, expected);
  };
  if (key !== undefined && typeof key !== 'function') refuse('key', key, "a function of the method's arguments");
  if (cost !== undefined && typeof cost !== 'function' && !isCost(cost)) {
    refuse('cost', cost, "a whole number >= 0, or a function of the method's arguments");
  }
  if (!ON_LIMIT.includes(onLimit)) refuse('onLimit', onLimit, "'throw', 'wait' or 'skip'");
  if (timeout !== undefined) duration(location, 'timeout', timeout);
  if (signal !== undefined && typeof signal !== 'function') {
    refuse('signal', signal, "a function of the method's arguments that returns an AbortSignal");
  }
  if (onLimit !== 'wait') {
    for (const option of ['timeout', 'signal'] as const) {
      if (options[option] !== undefined)
        throw configError('SLUICE_EXCLUDED_OPTIONS', methodMessages.onlyWaits(location, option));
    }
  }
  return { ...options, onLimit };
}
