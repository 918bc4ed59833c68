import type { ExecutionContext } from '@nestjs/common';
import type { KeyFunction, ResolvedKey } from '../../engine/limits/identity.js';
import type { CallableClasses, OptionPlace } from '../../engine/options/callable-classes.js';
import type { RequestParts } from '../transports/request-reader.js';
import type { ProxyWarning } from './proxy-warning.js';

/** The services of the app that keys use. */
export interface KeyServices {
  /** The number of leading bits of an IPv6 address that identify a client. */
  readonly ipv6Prefix: number;
  readonly proxyWarning: ProxyWarning;
  readonly classes: KeyClasses;
  /** The place of the option, for messages. */
  readonly place: OptionPlace;
}

/** The instances of the `key` classes. */
export type KeyClasses = CallableClasses<'resolve', KeyFunction>;

/** The names of a key. */
export interface KeyDescription {
  /** In the default name of a limit: `user`. */
  readonly name: string;
  /** In a sentence: `header 'x-api-key'`. */
  readonly noun: string;
}

/** The form of the identities of a key. */
export interface KeyForm {
  /** The prefix that all of them have. */
  readonly begins: string;
  /** Returns true if a text can be one of them. */
  isOne(text: string, ipv6Prefix?: number): boolean;
  /**
   * Returns true if some of them can begin with this text.
   * @default whether it is compatible with `begins`
   */
  mayBegin?(text: string): boolean;
  /** The expected form, for a text that isn't one of them. */
  expected(text: string): string;
}

/** One form of `key`: reads the option, and finds the identity of a request. */
export interface KeyScheme<Key = unknown, P = unknown> {
  /** The notation of such a key, for messages: `'header:<name>'`. */
  readonly form: string;
  /** Reads a key of this form; `undefined` for other forms. Throws `RateLimitConfigError` if the key has this form but is invalid. */
  parse(key: unknown, location: string): P | undefined;
  /** Its names in messages and default names. */
  describe(parameter: P, key: Key): KeyDescription;
  /** True if the key is only known once guards have run, and so not in a middleware. */
  readonly needsRoute: boolean;
  /** True if it needs authentication: limits are checked after the guards, and a request without a user is rejected with 401. */
  readonly needsUser?: boolean;
  /** True if it depends on the request only, so that limits with equal keys share the result. */
  readonly isPure?: boolean;
  /**
   * The form of its identities.
   * @default any text
   */
  formOf?(parameter: P): KeyForm;
  /** Returns the function that finds the identity of a request. */
  resolve(parameter: P, services: KeyServices): Identify;
}

/** A key resolver that has been bound. */
export type Identify = (context: ExecutionContext, parts: RequestParts) => ResolvedKey | Promise<ResolvedKey>;
