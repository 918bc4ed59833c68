import { Injectable, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages.js';
import { provided } from '../util/provided.js';
import { globally } from './global.js';
import { byHeader } from './header.js';
import { byIp, type IdentifyAddress } from './ip.js';
import type { Identify, KeyResolver, LimitKey } from './key-resolver.js';
import { ProxyWarning } from './proxy-warning.js';
import { byUser } from './user.js';

/** The name of an HTTP header (RFC 9110). */
const HEADER = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/;
const WANTS = "'ip', 'user', 'global', 'header:<name>', a function or a class that implements KeyResolver";

/** Makes a key resolver of the `key` of a limit. */
@Injectable()
export class KeyResolverFactory {
  private readonly instances = new Map<Type<KeyResolver>, KeyResolver | Promise<KeyResolver> | undefined>();

  private readonly proxyWarning = new ProxyWarning();

  constructor(private readonly modules: ModuleRef) {}

  /** Counts by address, also where nothing else is found. */
  byAddress(ipv6Prefix: number): IdentifyAddress {
    return byIp(ipv6Prefix, this.proxyWarning);
  }

  create(key: LimitKey, location: string, ipv6Prefix: number): Identify {
    if (key === 'ip') return this.byAddress(ipv6Prefix);
    if (key === 'user') return byUser;
    if (key === 'global') return globally;
    if (isResolverClass(key)) return this.byInstance(key);
    if (typeof key === 'function') return (context) => key(context);
    const header = typeof key === 'string' ? HEADER.exec(key)?.[1] : undefined;
    if (header !== undefined) return byHeader(header);
    throw new RateLimitConfigError(messages.wrongOption(location, 'key', key, WANTS));
  }

  /** Resolves when all classes that were named as a `key` so far have an instance. */
  async ready(): Promise<void> {
    for (const type of this.instances.keys()) await this.instance(type);
  }

  private byInstance(type: Type<KeyResolver>): Identify {
    if (!this.instances.has(type)) this.instances.set(type, undefined);
    return (context) => {
      const instance = this.instance(type);
      return instance instanceof Promise
        ? instance.then((resolver) => resolver.resolve(context))
        : instance.resolve(context);
    };
  }

  private instance(type: Type<KeyResolver>): KeyResolver | Promise<KeyResolver> {
    const known = this.instances.get(type);
    if (known !== undefined) return known;
    const made = this.find(type).then((instance) => {
      this.instances.set(type, instance);
      return instance;
    });
    this.instances.set(type, made);
    return made;
  }

  private async find(type: Type<KeyResolver>): Promise<KeyResolver> {
    const instance = await provided(this.modules, type);
    if (typeof instance.resolve === 'function') return instance;
    throw new RateLimitConfigError(messages.wrongOption('@RateLimit', 'key', type, WANTS));
  }
}

/** A class has its `resolve` on the prototype, or in an instance; a function has neither. */
function isResolverClass(key: LimitKey): key is Type<KeyResolver> {
  if (typeof key !== 'function') return false;
  const { resolve } = (key.prototype ?? {}) as Partial<KeyResolver>;
  return typeof resolve === 'function' || /^class\b/.test(Function.prototype.toString.call(key));
}
