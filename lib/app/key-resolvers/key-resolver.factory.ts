import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { LimitKey } from '../../engine/limits/identity.js';
import { givenOptions } from '../../engine/options/values.js';
import { getOrMake } from '../../engine/util/objects.js';
import { CallableClasses } from '../../engine/options/callable-classes.js';
import { listOf } from '../../engine/errors/wording.js';
import { keySchemes } from './index.js';
import { byIp, type IdentifyAddress } from './ip.js';
import type { Identify, KeyClasses, KeyDescription, KeyScheme } from './key-scheme.js';
import { ProxyWarning } from './proxy-warning.js';
import { wrongOption } from '../../engine/options/check-options.js';

/** The `key` of a limit, read and bound. */
export interface BoundKey extends KeyDescription, Pick<KeyScheme, 'needsRoute'> {
  /** The value that the user wrote. */
  readonly given: LimitKey;
  readonly needsUser: boolean;
  /** True if it depends on the request only. Equal keys then share one `identify`. */
  readonly isPure?: boolean;
  readonly identify: Identify;
}

/** Lists the forms of a `key` for messages. */
export function formsOf(schemes: readonly KeyScheme[]): string {
  return listOf(
    schemes.map(({ form }) => form),
    'or',
  );
}

/** Creates key resolvers from the `key` options of limits. */
@Injectable()
export class KeyResolverFactory {
  private readonly classes: KeyClasses;
  private readonly proxyWarning = new ProxyWarning();
  /** Bound keys that depend on the request only. Limits share them. */
  private readonly bound = new Map<string, BoundKey>();
  /** The functions that count per address. All limits share their cache of addresses. */
  private readonly addresses = new Map<number, IdentifyAddress>();

  constructor(modules: ModuleRef) {
    this.classes = new CallableClasses(modules, 'resolve', formsOf(keySchemes));
  }

  /** Returns the function that counts per address, also used as a fallback. */
  byAddress(ipv6Prefix: number): IdentifyAddress {
    return getOrMake(this.addresses, ipv6Prefix, () => byIp(ipv6Prefix, this.proxyWarning));
  }

  /** Reads a key. Throws `RateLimitConfigError`, which lists the `forms`. */
  bind(given: LimitKey, location: string, ipv6Prefix: number, forms?: string, option = 'key'): BoundKey {
    const id = typeof given === 'string' ? `${ipv6Prefix} ${given}` : undefined;
    const known = id === undefined ? undefined : this.bound.get(id);
    if (known !== undefined) return known;
    for (const scheme of keySchemes) {
      const parameter = scheme.parse(given, location);
      if (parameter === undefined) continue;
      const { needsRoute } = scheme;
      const { needsUser = false, isPure = false } = givenOptions(scheme, ['needsUser', 'isPure']);
      const { classes, proxyWarning } = this;
      const place = { location, option };
      const identify = scheme.resolve(parameter, { ipv6Prefix, proxyWarning, classes, place });
      const bound = { given, ...scheme.describe(parameter, given), needsRoute, needsUser, isPure, identify };
      if (isPure && id !== undefined) this.bound.set(id, bound);
      return bound;
    }
    throw wrongOption(location, option, given, forms ?? formsOf(keySchemes));
  }

  /** Resolves when all `key` classes so far have an instance. */
  ready(): Promise<void> {
    return this.classes.ready();
  }
}
