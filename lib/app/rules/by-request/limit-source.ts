import { type ExecutionContext, HttpException } from '@nestjs/common';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { byRequestMessages } from '../../../engine/errors/messages/app-code.js';
import type { OnceLogger } from '../../../engine/errors/logger.js';
import { type Awaitable, isPromise } from '../../../engine/util/awaitable.js';
import { reasonOf } from '../../../engine/errors/reasons.js';
import type { RuleSource } from '../route-rules.js';
import type { Rule } from '../rule.js';
import type { AnswerDeadline } from './answer-deadline.js';

/** A function or class of the app that finds the limits of one place, and a reader for its results. */
export interface Selection {
  find(context: ExecutionContext, place: string): Awaitable<unknown>;
  /** Reads a result. `ownNamespace`: the namespace of the route, if each route has its own counter. Throws `RateLimitConfigError`. */
  read(answer: unknown, place: string, ownNamespace?: string): readonly Rule[];
  /** One of its rules, if they all have the same name and only differ in their rate. */
  readonly example?: Rule;
}

/** Finds rules per request. If that fails, messages name the place and the route. */
export class LimitSource implements RuleSource {
  /** The place of its declaration, and its route, for messages. */
  readonly place: string;

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
      const late = () =>
        new RateLimitConfigError(byRequestMessages.slow(this.place, this.deadline.ms), {
          code: 'SLUICE_RESOLVE_TIMEOUT',
        });
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
