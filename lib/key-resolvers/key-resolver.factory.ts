import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { givenOptions } from '../algorithms/options.js';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { listOf } from '../errors/wording.js';
import { keySchemes, type LimitKey } from './index.js';
import { byIp, type IdentifyAddress } from './ip.js';
import type { Identify } from './key-resolver.js';
import type { KeyDescription, KeyScheme } from './key-scheme.js';
import { ProxyWarning } from './proxy-warning.js';
import { ResolverInstances } from './resolver-instances.js';

/** The `key` of a limit, as it was read. */
export interface BoundKey extends KeyDescription, Pick<KeyScheme, 'needsRoute'> {
  /** What the user wrote. */
  readonly given: LimitKey;
  readonly needsUser: boolean;
  /** Whether it looks at nothing but the request: keys that are equal then have the same `identify`. */
  readonly isPure?: boolean;
  readonly identify: Identify;
}

/** Says what a `key` can be. */
export function formsOf(schemes: readonly KeyScheme[]): string {
  return listOf(
    schemes.map(({ form }) => form),
    'or',
  );
}

/** Makes a key resolver of the `key` of a limit. */
@Injectable()
export class KeyResolverFactory {
  private readonly instances: ResolverInstances;
  private readonly proxyWarning = new ProxyWarning();
  /** What finds the identities of keys that look at nothing but the request. */
  private readonly pure = new Map<string, Identify>();

  constructor(modules: ModuleRef) {
    this.instances = new ResolverInstances(modules, formsOf(keySchemes));
  }

  /** Counts by address, also where nothing else is found. */
  byAddress(ipv6Prefix: number): IdentifyAddress {
    return byIp(ipv6Prefix, this.proxyWarning);
  }

  /** Reads a key. Throws `RateLimitConfigError`, with the `forms` that it could be. */
  bind(given: LimitKey, location: string, ipv6Prefix: number, forms = formsOf(keySchemes), option = 'key'): BoundKey {
    for (const scheme of keySchemes) {
      const parameter = scheme.parse(given, location);
      if (parameter === undefined) continue;
      const { needsRoute } = scheme;
      const { needsUser = false, isPure = false } = givenOptions(scheme, ['needsUser', 'isPure']);
      const identify = this.resolver(scheme, parameter, isPure, ipv6Prefix);
      return { given, ...scheme.describe(parameter, given), needsRoute, needsUser, isPure, identify };
    }
    throw new RateLimitConfigError(messages.wrongOption(location, option, given, forms));
  }

  private resolver(scheme: KeyScheme, parameter: unknown, isPure: boolean, ipv6Prefix: number): Identify {
    const { instances, proxyWarning } = this;
    const id = `${scheme.form} ${String(parameter)} ${ipv6Prefix}`;
    const known = isPure ? this.pure.get(id) : undefined;
    if (known !== undefined) return known;
    const identify = scheme.resolve(parameter, { ipv6Prefix, proxyWarning, instances });
    if (isPure) this.pure.set(id, identify);
    return identify;
  }

  /** Resolves when all classes that were named as a `key` so far have an instance. */
  ready(): Promise<void> {
    return this.instances.ready();
  }
}
