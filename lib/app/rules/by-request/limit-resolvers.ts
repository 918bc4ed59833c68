import { configError } from '../../../engine/errors/errors.js';
import { optionMessages } from '../../../engine/errors/messages/options.js';
import { editsBetween } from '../../../engine/errors/wording.js';
import { Inject, Injectable, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { LimitResolver } from '../../config/limits-by-request.js';
import type { RateLimitSettings } from '../../config/settings.js';
import { RATE_LIMIT_SETTINGS } from '../../config/tokens.js';
import { byRequestMessages } from '../../../engine/errors/messages/app-code.js';
import { Instances } from '../../../engine/util/instances.js';
import { AnswerDeadline, ResolvedLimits } from './resolved-limits.js';
import { wrongOption } from '../../../engine/options/check-options.js';

/**
 * Throws `RateLimitConfigError` if an instance of the app has a member whose name is almost that of an optional one, and lacks that one.
 * All other members are allowed.
 */
export function refuseMisspelt(location: string, instance: object, optional: readonly string[]): void {
  const lacking = optional.filter((member) => !(member in instance));
  for (const member of lacking.length === 0 ? [] : membersOf(instance)) {
    const meant = lacking.find((each) => isAlmost(member, each));
    if (meant !== undefined) {
      throw configError('SLUICE_UNKNOWN_OPTION', optionMessages.at(location, optionMessages.misspelt(member, meant)));
    }
  }
}

/** Returns true if one letter is missing, added, replaced or swapped, or letters differ only in case. */
function isAlmost(member: string, known: string): boolean {
  if (member.toLowerCase() === known.toLowerCase()) return true;
  // Many short words are only one letter apart, for example `ttl` and `tls`.
  const isReplaced = member.length === known.length && Array.from(member).some((letter) => !known.includes(letter));
  return editsBetween(member, known) === 1 && !(isReplaced && known.length < 5);
}

/** The names of an instance's own members, and of those of its classes. */
function membersOf(instance: object): string[] {
  const members: string[] = [];
  for (
    let of: object | null = instance;
    of !== null && of !== Object.prototype;
    of = Object.getPrototypeOf(of) as object
  ) {
    members.push(...Object.getOwnPropertyNames(of));
  }
  return members;
}

type CheckFallback = (fallback: unknown, location: string) => unknown;

/** The place where a class is used first. */
interface FirstPlace {
  readonly location: string;
  readonly check: CheckFallback;
}

const OPTIONAL = ['keyOf', 'ttl', 'maxKeys', 'fallback'] as const satisfies (keyof LimitResolver)[];

/** The cached results of all classes that find limits. */
@Injectable()
export class LimitResolvers extends Instances<LimitResolver, FirstPlace, ResolvedLimits> {
  /** Bounds how long requests wait for these classes, and for functions. */
  readonly deadline: AnswerDeadline;

  constructor(modules: ModuleRef, @Inject(RATE_LIMIT_SETTINGS) { resolveTimeoutMs }: RateLimitSettings) {
    const deadline = new AnswerDeadline(resolveTimeoutMs);
    super(modules, (instance, type, place) => checkedAnswers(instance, type, place, deadline));
    this.deadline = deadline;
  }
}

function checkedAnswers(
  instance: LimitResolver,
  type: Type<LimitResolver>,
  place: FirstPlace,
  deadline: AnswerDeadline,
): ResolvedLimits {
  const { resolve, keyOf, fallback } = instance as Partial<LimitResolver>;
  const location = `${place.location}: ${type.name}`;
  if (typeof resolve !== 'function') throw wrongOption(location, 'resolve', resolve, byRequestMessages.wrongResolver);
  if (keyOf !== undefined && typeof keyOf !== 'function') {
    throw wrongOption(location, 'keyOf', keyOf, 'a function of the context');
  }
  if (fallback !== undefined) place.check(fallback, `${location}.fallback`);
  refuseMisspelt(location, instance, OPTIONAL);
  return new ResolvedLimits(instance, deadline, location);
}
