import { Injectable, type Type } from '@nestjs/common';
import type { LimitDefinition } from '../../config/limit-definition.js';
import type { LimitFunction, LimitResolver } from '../../config/limits-by-request.js';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../../engine/errors/logger.js';
import { byRequestMessages } from '../../../engine/errors/messages/app-code.js';
import { isResolverClass } from '../../key-resolvers/custom.js';
import { andThen } from '../../../engine/util/awaitable.js';
import type { Declaration } from '../declaration.js';
import { LimitRegistry } from '../limit-registry.js';
import type { Rule } from '../rule.js';
import type { ByRequest } from './is-fixed.js';
import { LimitResolvers } from './limit-resolvers.js';
import { LimitSource, type Selection } from './limit-source.js';
import { type ByRate, RateSelection } from './rate-selection.js';

/** Turns functions and classes that find limits into sources. */
@Injectable()
export class LimitSources {
  private readonly log = new OnceLogger(logger);

  constructor(
    private readonly registry: LimitRegistry,
    private readonly resolvers: LimitResolvers,
  ) {}

  /** Throws `RateLimitConfigError`. */
  make(spec: ByRequest, declaration: Declaration): LimitSource {
    this.registry.choosesOnRoutes = true;
    const { location } = declaration;
    if (typeof spec !== 'function') {
      const compile = (limit: LimitDefinition, place: Declaration) => this.registry.rule(limit, place);
      return this.source(location, new RateSelection(spec as ByRate, { ...declaration, onRoutes: true }, compile));
    }
    const { namespace } = declaration;
    const read = (answer: unknown, place: string) => this.rulesOf(answer, { location: place, namespace });
    if (!isResolverClass(spec)) return this.source(location, { find: spec as LimitFunction, read });
    const type = spec as Type<LimitResolver>;
    this.resolvers.need(type, { location, check: read });
    return this.source(`${location} (${type.name})`, {
      find: (context, place) =>
        andThen(this.resolvers.of(type), (resolved) => resolved.find(context, (answer) => read(answer, place))),
      read,
    });
  }

  private source(location: string, selection: Selection): LimitSource {
    return new LimitSource(location, selection, this.resolvers.deadline, this.log);
  }

  private rulesOf(answer: unknown, declaration: Declaration): readonly Rule[] {
    if (answer === undefined)
      throw new RateLimitConfigError(byRequestMessages.noAnswer(declaration.location), {
        code: 'SLUICE_INVALID_RESULT',
      });
    const limits: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
    return limits
      .filter((limit) => limit !== null && limit !== false)
      .map((limit) => this.registry.rule(limit as LimitDefinition, declaration));
  }
}
