import type { ProxyWarning } from './proxy-warning.js';
import type { Identify } from './key-resolver.js';
import type { ResolverInstances } from './resolver-instances.js';

/** What an app has for its keys. */
export interface KeyServices {
  /** How many leading bits of an IPv6 address tell clients apart. */
  readonly ipv6Prefix: number;
  readonly proxyWarning: ProxyWarning;
  readonly instances: ResolverInstances;
}

/** How a key is called. */
export interface KeyDescription {
  /** In the default name of a limit: `user`. */
  readonly name: string;
  /** In a sentence: `header 'x-api-key'`. */
  readonly noun: string;
}

/** The form of the identities that a key makes. */
export interface KeyForm {
  /** How all of them begin. */
  readonly begins: string;
  /** Whether a text can be one. */
  isOne(text: string, ipv6Prefix?: number): boolean;
  /**
   * Whether some of them can begin so.
   * @default as all of them begin
   */
  mayBegin?(text: string): boolean;
  /** What a text should be that is none, for messages. */
  wants(text: string): string;
}

/** One form of `key`: how it is read, and how it finds the identity of a request. */
export interface KeyScheme<Key = unknown, P = unknown> {
  /** How such a key is written, for messages: `'header:<name>'`. */
  readonly form: string;
  /** Reads a key that is of this form, else nothing. Throws `RateLimitConfigError` for one that is of this form, but wrong. */
  parse(key: unknown, location: string): P | undefined;
  /** What messages and default names call it. */
  describe(parameter: P, key: Key): KeyDescription;
  /** Whether it is known only once the route is, so not to a middleware. */
  readonly needsRoute: boolean;
  /** Whether authentication has to come first: its limits are checked after the guards, and a request without it gets a 401. */
  readonly needsUser?: boolean;
  /** Whether it looks at nothing but the request, so that limits with equal keys ask once. */
  readonly isPure?: boolean;
  /**
   * The identity that it makes of a value that somebody has written down: of a header's value, its hash; one that is an identity
   * already stays as it is. Nothing if it never makes it; the value itself unless given.
   */
  identityOf?(parameter: P, value: string): string | undefined;
  /**
   * The form of the identities that it makes.
   * @default any text
   */
  formOf?(parameter: P): KeyForm;
  /** Makes what finds the identity of a request. */
  resolve(parameter: P, services: KeyServices): Identify;
}
