import type { NestInterceptor } from '@nestjs/common';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/interceptors-consumer.js';
import type { Observable } from 'rxjs';
import type { Outcome } from '../../../lib/index.js';
import { HandlerRun, reportPromise } from '../../../lib/nest/request/handler-run.js';
import { RequestCompletion } from '../../../lib/nest/request/request-completion.js';

type Work = () => unknown;

/** A call of a handler on its way through Nest, with how it ended once that is known. */
export class HandlerCall {
  readonly ends: Outcome[] = [];
  private readonly controller: { run: Work; other: Work };
  private readonly handler: Work;

  /** `work` is what the handler does, given the controller; `reports` says which of its methods report their promises. */
  constructor(
    work: (controller: { other: Work }) => unknown,
    { other = () => {}, reports = ['run', 'other'] }: { other?: Work; reports?: readonly string[] } = {},
  ) {
    class Controller {
      run() {
        return work(this);
      }

      other() {
        return other();
      }
    }
    for (const name of reports) reportPromise(Controller.prototype, name);
    this.controller = new Controller();
    this.handler = Reflect.get(Controller.prototype, 'run');
  }

  /** The answer, which nobody listens to yet. `within` are the interceptors behind ours, `before` is what pipes do. */
  async answer({ type = 'http', within = [], before = async () => {} }: CallOptions = {}): Promise<
    Observable<unknown>
  > {
    const ours: NestInterceptor = {
      intercept: (context, next) => {
        const completion = new RequestCompletion(context, undefined);
        completion.onEnd((outcome) => this.ends.push(outcome));
        const run = new HandlerRun();
        const handled = run.enter(context.getHandler(), () => next.handle());
        return run.watch(handled, context, completion.handlerStarted());
      },
    };
    const call = async () => {
      await before();
      return this.controller.run();
    };
    const interceptors = [ours, ...within];
    const answer: unknown = await new InterceptorsConsumer().intercept(
      interceptors,
      [],
      this.controller,
      this.handler,
      call,
      type,
    );
    return answer as Observable<unknown>;
  }
}

interface CallOptions {
  readonly type?: string;
  readonly within?: readonly NestInterceptor[];
  readonly before?: () => Promise<void>;
}
