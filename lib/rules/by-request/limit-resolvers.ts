import { Inject, Injectable, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { LimitResolver } from '../../config/limits-by-request.js';
import type { RateLimitSettings } from '../../config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../config/tokens.js';
import { RateLimitConfigError } from '../../errors/errors.js';
import { byRequestMessages } from '../../errors/messages/by-request.js';
import { messages } from '../../errors/messages/general.js';
import { refuseMisspelt } from '../../options/misspelt-members.js';
import { provided } from '../../util/provided.js';
import { AnswerDeadline } from './answer-deadline.js';
import { ResolvedLimits } from './resolved-limits.js';

/** Checks the `fallback` of a resolver in a place. */
type CheckFallback = (fallback: unknown, location: string) => unknown;

/** Where a class is named first. */
interface FirstPlace {
  readonly location: string;
  readonly check: CheckFallback;
}

/** The members of a resolver that it may lack. */
const OPTIONAL = ['keyOf', 'ttl', 'maxKeys', 'fallback'] as const satisfies (keyof LimitResolver)[];

/** The instances of all classes that find limits, each with its answers. */
@Injectable()
export class LimitResolvers {
  /** Bounds how long requests wait for them, and for functions. */
  readonly deadline: AnswerDeadline;
  private readonly resolved = new Map<Type<LimitResolver>, ResolvedLimits | Promise<ResolvedLimits> | undefined>();
  private readonly firstPlaces = new Map<Type<LimitResolver>, FirstPlace>();

  constructor(
    private readonly modules: ModuleRef,
    @Inject(RATE_LIMIT_SETTINGS) { resolveTimeoutMs }: RateLimitSettings,
  ) {
    this.deadline = new AnswerDeadline(resolveTimeoutMs);
  }

  /** Announces that an instance will be needed. */
  need(type: Type<LimitResolver>, location: string, check: CheckFallback): void {
    if (this.resolved.has(type)) return;
    this.resolved.set(type, undefined);
    this.firstPlaces.set(type, { location, check });
  }

  /** Resolves when all classes needed so far have an instance. */
  async ready(): Promise<void> {
    for (const type of this.resolved.keys()) await this.of(type);
  }

  /** The answers of a class, or, until it has an instance, a promise of them. */
  of(type: Type<LimitResolver>): ResolvedLimits | Promise<ResolvedLimits> {
    const known = this.resolved.get(type);
    if (known !== undefined) return known;
    const made = this.make(type).then((resolved) => {
      this.resolved.set(type, resolved);
      return resolved;
    });
    this.resolved.set(type, made);
    return made;
  }

  private async make(type: Type<LimitResolver>): Promise<ResolvedLimits> {
    const instance = await provided(this.modules, type);
    const { resolve, keyOf, fallback } = instance as Partial<LimitResolver>;
    const place = this.firstPlaces.get(type);
    const location = place === undefined ? type.name : `${place.location}: ${type.name}`;
    if (typeof resolve !== 'function') {
      throw new RateLimitConfigError(
        messages.wrongOption(location, 'resolve', resolve, byRequestMessages.wrongResolver),
      );
    }
    if (keyOf !== undefined && typeof keyOf !== 'function') {
      throw new RateLimitConfigError(messages.wrongOption(location, 'keyOf', keyOf, 'a function of the context'));
    }
    if (fallback !== undefined) place?.check(fallback, `${location}.fallback`);
    refuseMisspelt(location, instance, OPTIONAL);
    return new ResolvedLimits(instance, this.deadline, location);
  }
}
