import { type DynamicModule, type FactoryProvider, Scope, type Type } from '@nestjs/common';
import { configError, RateLimitConfigError } from '../engine/errors/errors.js';
import { messages } from '../engine/errors/messages/general.js';

/** A copy of the package. Copies of later releases read it as well, so it may only gain members. */
interface Copy {
  /** The tokens that its `RateLimitModule` exports. */
  readonly exported: readonly unknown[];
  /** True once its `RateLimitModule` is set up. */
  isSetUp: boolean;
  /** Providers that other copies added for its classes: removed once its own module is set up. */
  readonly substitutes: FactoryProvider[][];
}

/** The copies of the package in this process: an app may load its ES modules and its CommonJS modules, or two versions. */
const COPIES = Symbol.for('nestjs-sluice:copies');

function copies(): Set<Copy> {
  return ((globalThis as { [COPIES]?: Set<Copy> })[COPIES] ??= new Set());
}

const own: { -readonly [Member in keyof Copy]: Copy[Member] } = { exported: [], isSetUp: false, substitutes: [] };

class ClassesOfOtherCopies {}

/** Lets other copies know this one. `exported` may grow later. */
export function addCopy(exported: readonly unknown[]): void {
  own.exported = exported;
  copies().add(own);
}

/**
 * Notes that `RateLimitModule` of this copy is set up. Returns modules to import: an app that injects a class of another copy, whose module
 * isn't set up, gets an error that says so, in place of Nest's, which cannot know.
 */
export function setUpCopy(): DynamicModule[] {
  own.isSetUp = true;
  copies().add(own);
  for (const substitutes of own.substitutes.splice(0)) substitutes.length = 0;
  return [...copies()].filter((copy) => !copy.isSetUp).map(substitutesFor);
}

function substitutesFor(copy: Copy): DynamicModule {
  const classes = copy.exported.filter((token): token is Type => typeof token === 'function');
  const providers = classes.map((type): FactoryProvider => ({
    provide: type,
    // Called only for classes that inject it.
    scope: Scope.TRANSIENT,
    useFactory: () => {
      throw configError('SLUICE_TWO_COPIES', messages.twoCopies(type.name));
    },
  }));
  copy.substitutes.push(providers);
  return { module: ClassesOfOtherCopies, global: true, providers, exports: providers };
}

/** The error of something that found no `RateLimitModule`: that of another copy may be set up. */
export function missingModule(location: string, message: string, cause?: unknown): RateLimitConfigError {
  const options = cause === undefined ? {} : { cause };
  const isElsewhere = !own.isSetUp && [...copies()].some(({ isSetUp }) => isSetUp);
  return isElsewhere
    ? new RateLimitConfigError(messages.twoCopies(location), { ...options, code: 'SLUICE_TWO_COPIES' })
    : new RateLimitConfigError(message, { ...options, code: 'SLUICE_NO_MODULE' });
}

/** The part of an app that finds providers of any module. */
interface ProviderLookup {
  get<T>(token: Token<T>, options: { readonly strict: false }): T;
}

type Token<T> = Type<T> | symbol;

/** A provider of `RateLimitModule`. Throws `RateLimitConfigError` with the message if the app doesn't import it. */
export function providerOf<T>(
  app: ProviderLookup,
  token: Token<T>,
  location: string,
  message = messages.notImported(location),
): T {
  try {
    return app.get<T>(token, { strict: false });
  } catch (cause) {
    throw missingModule(location, message, cause);
  }
}
