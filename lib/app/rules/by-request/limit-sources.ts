import { type ExecutionContext, HttpException, Injectable, type Type } from '@nestjs/common';
import { configError, RateLimitConfigError } from '../../../engine/errors/errors.js';
import { logger, OnceLogger } from '../../../engine/errors/logger.js';
import { byRequestMessages } from '../../../engine/errors/messages/app-code.js';
import { reasonOf } from '../../../engine/errors/reasons.js';
import { andThen, type Awaitable, isPromise } from '../../../engine/util/awaitable.js';
import { RecentMap } from '../../../engine/util/bounded-maps.js';
import { isCallable } from '../../../engine/util/objects.js';
import type { ExactLimit, LimitDefinition } from '../../config/limit-definition.js';
import type { ByRequest, LimitFunction, LimitResolver, RateFunction } from '../../config/limits-by-request.js';
import { isResolverClass } from '../../key-resolvers/custom.js';
import type { Declaration } from '../declaration.js';
import { LimitRegistry } from '../limit-registry.js';
import type { Rule } from '../rule.js';
import type { AnswerDeadline } from './resolved-limits.js';
import { LimitResolvers } from './limit-resolvers.js';
import { wrongOption } from '../../../engine/options/check-options.js';

/** A function or class of the app that finds the limits of one place, and a reader for its results. */
interface Selection {
  find(context: ExecutionContext, place: string): Awaitable<unknown>;
  /** Reads a result. `ownNamespace`: the namespace of the route, if each route has its own counter. Throws `RateLimitConfigError`. */
  read(answer: unknown, place: string, ownNamespace?: string): readonly Rule[];
  /** One of its rules, if they all have the same name and only differ in their rate. */
  readonly example?: Rule;
}

/** Finds rules per request. If that fails, messages name the place and the route. */
export class LimitSource {
  /** The place of its declaration, and its route, for messages. */
  readonly place: string;

  /** `location`: the place of its declaration. */
  constructor(
    readonly location: string,
    private readonly selection: Selection,
    private readonly deadline: AnswerDeadline,
    private readonly log: OnceLogger,
    route?: string,
    private readonly ownNamespace?: string,
  ) {
    this.place = route === undefined ? location : byRequestMessages.onRoute(location, route);
  }

  /** One of its rules, if they all have the same name and only differ in their rate. */
  get example(): Rule | undefined {
    return this.selection.example;
  }

  /** A copy for one route. `namespace` returns the namespace of the route. */
  forRoute(name: string, namespace: () => string): LimitSource {
    const own = this.example?.perRoute === true ? namespace() : undefined;
    return new LimitSource(this.location, this.selection, this.deadline, this.log, name, own);
  }

  ask(context: ExecutionContext): Awaitable<readonly Rule[]> {
    try {
      const answer = this.selection.find(context, this.place);
      return isPromise(answer) ? this.answered(answer) : this.read(answer);
    } catch (error) {
      throw this.reported(error);
    }
  }

  private async answered(answer: Promise<unknown>): Promise<readonly Rule[]> {
    try {
      const late = () => configError('SLUICE_RESOLVE_TIMEOUT', byRequestMessages.slow(this.place, this.deadline.ms));
      return this.read(await this.deadline.of(answer, late));
    } catch (error) {
      throw this.reported(error);
    }
  }

  private read(answer: unknown): readonly Rule[] {
    return this.selection.read(answer, this.place, this.ownNamespace);
  }

  /** The library's own errors name the place, and HTTP errors are thrown on purpose. Others are logged with the place. None is changed. */
  private reported(error: unknown): unknown {
    if (!(error instanceof RateLimitConfigError || error instanceof HttpException)) {
      this.log.error(byRequestMessages.failed(this.place), error instanceof Error ? error.stack : reasonOf(error));
    }
    return error;
  }
}

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
      throw configError('SLUICE_INVALID_RESULT', byRequestMessages.noAnswer(declaration.location));
    const limits: readonly unknown[] = Array.isArray(answer) ? answer : [answer];
    return limits
      .filter((limit) => limit !== null && limit !== false)
      .map((limit) => this.registry.rule(limit as LimitDefinition, declaration));
  }
}

/** A limit whose rate is a function, regardless of its other options. */
interface ByRate {
  readonly rate: RateFunction;
  readonly phase?: unknown;
}

/** A limit whose rate is found per request. Its other options are checked at start-up. */
class RateSelection implements Selection {
  readonly example: Rule;
  private readonly rate: RateFunction;
  private readonly others: Omit<ExactLimit, 'rate'>;
  /** The rules of recent rates, by route. */
  private readonly known = new Map<string, RecentMap<readonly Rule[]>>();

  constructor(
    limit: ByRate,
    private readonly declaration: Declaration,
    private readonly compile: (limit: LimitDefinition, declaration: Declaration) => Rule,
  ) {
    const { rate, ...others } = limit;
    this.rate = rate;
    this.others = others as Omit<ExactLimit, 'rate'>;
    if (!isCallable(rate)) throw wrongOption(declaration.location, 'rate', rate, byRequestMessages.wrongRateSource);
    if (limit.phase === 'middleware') {
      throw wrongOption(declaration.location, 'phase', limit.phase, byRequestMessages.early);
    }
    // Options such as `prefetch` and `ceiling` depend on the rate, and have to be valid for a small or for a large one.
    try {
      this.example = this.ruleOf(1, declaration.location);
    } catch {
      this.example = this.ruleOf(1_000_000, declaration.location);
    }
  }

  find(context: ExecutionContext): number | null | Promise<number | null> {
    return this.rate(context);
  }

  read(rate: unknown, location: string, route = ''): readonly Rule[] {
    if (rate === null) return NONE;
    if (typeof rate !== 'number') throw wrongOption(location, 'rate', rate, byRequestMessages.wrongRate);
    let ofRoute = this.known.get(route);
    if (ofRoute === undefined) this.known.set(route, (ofRoute = new RecentMap()));
    return ofRoute.of(String(rate), () => [this.ruleOf(rate, location, route)])!;
  }

  private ruleOf(rate: number, location: string, route = ''): Rule {
    const { namespace } = this.declaration;
    const definition = { ...this.others, rate } as LimitDefinition;
    const own = route === '' ? namespace : `${namespace} ${route}`;
    return this.compile(definition, { ...this.declaration, location, namespace: own, rate: this.rate });
  }
}

const NONE: readonly Rule[] = [];
