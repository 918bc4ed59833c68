import { type ExecutionContext, HttpException } from '@nestjs/common';
import { RateLimitConfigError } from '../../../engine/errors/errors.js';
import { byRequestMessages } from '../../../engine/errors/messages/by-request.js';
import type { OnceLogger } from '../../../engine/errors/logger.js';
import { type Awaitable, isPromise } from '../../../engine/util/awaitable.js';
import { reasonOf } from '../../../engine/util/reason-of.js';
import type { RuleSource } from '../route-rules.js';
import type { Rule } from '../rule.js';
import type { AnswerDeadline } from './answer-deadline.js';

/** A function of the app, or a class, that is asked for limits in one place, and what becomes of its answers. */
export interface Selection {
  find(context: ExecutionContext, place: string): Awaitable<unknown>;
  /** Reads an answer. `ownNamespace`: that of the route, if each route counts by itself. Throws `RateLimitConfigError`. */
  read(answer: unknown, place: string, ownNamespace?: string): readonly Rule[];
  /** One of its rules, if they all have one name and differ only in their rate. */
  readonly example?: Rule;
}

/** Finds rules by the request, and says which place and route failed. */
export class LimitSource implements RuleSource {
  /** Where it is declared, and on which route, for messages. */
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

  /** The same for one route. `namespace` finds the route's own. */
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

  /** Errors of the library name the place, and those of HTTP are thrown on purpose. Others are logged with it, and stay as they are. */
  private reported(error: unknown): unknown {
    if (!(error instanceof RateLimitConfigError || error instanceof HttpException)) {
      this.log.error(byRequestMessages.failed(this.place), error instanceof Error ? error.stack : reasonOf(error));
    }
    return error;
  }
}
