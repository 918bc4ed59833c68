import type { OptionPlace } from '../../engine/util/instances.js';
import type { ProxyWarning } from './proxy-warning.js';
import type { ResolverInstances } from './resolver-instances.js';
import type { ExecutionContext } from '@nestjs/common';
import type { ResolvedKey } from '../../engine/limits/limit-key.js';
import type { RequestParts } from '../transports/request-reader.js';

/** What an app provides for its keys. */
export interface KeyServices {
  /** The number of leading bits of an IPv6 address that identify a client. */
  readonly ipv6Prefix: number;
  readonly proxyWarning: ProxyWarning;
  readonly instances: ResolverInstances;
  /** Where the key is given. */
  readonly place: OptionPlace;
}

/** The names of a key. */
export interface KeyDescription {
  /** In the default name of a limit: `user`. */
  readonly name: string;
  /** In a sentence: `header 'x-api-key'`. */
  readonly noun: string;
}

/** The form of the identities that a key makes. */
export interface KeyForm {
  /** The prefix of all of them. */
  readonly begins: string;
  /** Whether a text can be one of them. */
  isOne(text: string, ipv6Prefix?: number): boolean;
  /**
   * Whether some of them can begin with this text.
   * @default whether it is compatible with `begins`
   */
  mayBegin?(text: string): boolean;
  /** What a text that is not one of them should be, for messages. */
  expected(text: string): string;
}

/** One form of `key`: how it is read, and how it finds the identity of a request. */
export interface KeyScheme<Key = unknown, P = unknown> {
  /** How such a key is written, for messages: `'header:<name>'`. */
  readonly form: string;
  /**
   * Reads a key of this form; `undefined` for other forms. Throws `RateLimitConfigError` if the key is of this form, but wrong.
   */
  parse(key: unknown, location: string): P | undefined;
  /** Its names in messages and default names. */
  describe(parameter: P, key: Key): KeyDescription;
  /** Whether it is known only once guards have run, and so not in a middleware. */
  readonly needsRoute: boolean;
  /** Whether it needs authentication first: its limits are checked after the guards, and a request without a user gets a 401. */
  readonly needsUser?: boolean;
  /** Whether it depends on the request alone, so that limits with equal keys share the result. */
  readonly isPure?: boolean;
  /**
   * The form of the identities that it makes.
   * @default any text
   */
  formOf?(parameter: P): KeyForm;
  /** Makes the function that finds the identity of a request. */
  resolve(parameter: P, services: KeyServices): Identify;
}

/** A key resolver that has been bound. */
export type Identify = (context: ExecutionContext, parts: RequestParts) => ResolvedKey | Promise<ResolvedKey>;
