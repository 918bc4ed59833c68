import { GuardsConsumer } from '@nestjs/core/guards/guards-consumer.js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { InterceptorsConsumer } from '@nestjs/core/interceptors/interceptors-consumer.js';
import type { NestInterceptor } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { partOfCall } from './request/abandoned-observable.js';
import { CallRun, keepRun, runOf } from './request/call-run.js';
import { searchRequest } from './request/requests.js';
import { isAwaited } from '../app/rules/route-rules-registry.js';
import { isPromise } from '../engine/util/awaitable.js';

type Activate = GuardsConsumer['tryActivate'];
type Intercept = InterceptorsConsumer['intercept'];
type Handle = Parameters<Intercept>[4];

let follows = false;

/**
 * Tracks when Nest is done with the guards, interceptors, pipes and handler of a call whose end has to be known. On every transport, Nest
 * runs calls through the same two methods. Nothing else reports the end of a guard whose client has left, or of a pipe whose result nobody
 * awaits.
 */
export function followCalls(): void {
  if (follows) return;
  follows = true;
  const tryActivate = Reflect.get(GuardsConsumer.prototype, 'tryActivate');
  GuardsConsumer.prototype.tryActivate = function (this: GuardsConsumer, ...call: Parameters<Activate>) {
    if (!isAwaited(call[3])) return tryActivate.apply(this, call);
    const run = keepRun(call[1], new CallRun());
    const activated = tryActivate.apply(this, call);
    run.guards(activated);
    return activated;
  };
  const intercept = Reflect.get(InterceptorsConsumer.prototype, 'intercept');
  InterceptorsConsumer.prototype.intercept = function (this: InterceptorsConsumer, ...call: Parameters<Intercept>) {
    if (!isAwaited(call[3])) return intercept.apply(this, call);
    const [interceptors, args, instance, handler, next, type] = call;
    const context = new ExecutionContextHost(args, instance.constructor as never, handler);
    const run = searchRequest(context)?.run ?? runOf(args) ?? new CallRun();
    keepRun(args, run);
    const followed = interceptors?.map((interceptor) => following(interceptor, run));
    const handled = intercept.call(this, followed, args, instance, handler, handling(next, run), type);
    run.prepares(handled);
    return handled;
  } as Intercept;
}

/** Wraps an interceptor, which counts as running until it has returned its Observable. */
function following(interceptor: NestInterceptor, run: CallRun): NestInterceptor {
  return {
    intercept: (context, next) => {
      const given = interceptor.intercept(context, next);
      if (isPromise(given)) run.during(given);
      return given;
    },
  };
}

/** Wraps the pipes and the handler, which count as running until they have returned a value, and, if that is a stream, until it ends. */
function handling(next: Handle, run: CallRun): Handle {
  return async () => {
    const given: Promise<unknown> = next();
    run.during(given);
    const value = await given;
    if (isObservable(value)) return partOfCall(value, run);
    run.lingerWith(value);
    return value;
  };
}
