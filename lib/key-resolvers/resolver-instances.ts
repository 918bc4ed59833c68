import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { RateLimitConfigError } from '../errors/errors.js';
import { messages } from '../errors/messages/general.js';
import { provided } from '../util/provided.js';
import type { KeyResolver } from './key-resolver.js';

/** The instances of the classes named as a `key`. */
export class ResolverInstances {
  private readonly instances = new Map<Type<KeyResolver>, KeyResolver | Promise<KeyResolver> | undefined>();

  constructor(
    private readonly modules: ModuleRef,
    /** The forms of a `key`, for messages. */
    private readonly forms: string,
  ) {}

  /** Announces that an instance will be needed. */
  need(type: Type<KeyResolver>): void {
    if (!this.instances.has(type)) this.instances.set(type, undefined);
  }

  /** Resolves when all classes needed so far have an instance. */
  async ready(): Promise<void> {
    for (const type of this.instances.keys()) await this.of(type);
  }

  /** The instance of a class, or, until there is one, a promise of it. */
  of(type: Type<KeyResolver>): KeyResolver | Promise<KeyResolver> {
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
    throw new RateLimitConfigError(messages.wrongOption('@RateLimit', 'key', type, this.forms));
  }
}
