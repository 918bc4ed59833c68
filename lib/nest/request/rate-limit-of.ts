import type { ArgumentsHost, ExecutionContext } from '@nestjs/common';
import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import { asObject } from '../../engine/util/objects.js';
import { RequestDecision } from './request-decision.js';
import { requestOfCall, requestOfRaw } from './request-of-call.js';
import { decidedOf, findEarly, searchDecided, searchRequest } from './requests.js';

/** The maximum number of arguments of a call. A GraphQL field has four. */
const MOST_ARGUMENTS = 4;

/**
 * Returns the decisions of limits on a request so far, including rejections: for middlewares, guards, interceptors, pipes and exception
 * filters. `undefined` if no limit was checked. Throws `RateLimitArgumentError` if `call` isn't an object.
 *
 * @param call the context or host of the request, of any transport; or over HTTP the request itself
 * @example
 * ```ts
 * const remaining = rateLimitOf(context)?.tightest.remaining;
 * ```
 */
export function rateLimitOf(call: ArgumentsHost | object): RequestDecision | undefined {
  if (asObject(call) === undefined) throw new RateLimitArgumentError(messages.wrongCallOf(call));
  return RequestDecision.ofRequest(isHost(call) ? decidedIn(call) : decidedFor(call));
}

function decidedIn(host: ArgumentsHost): ReturnType<typeof decidedOf> {
  const args = argsOf(host);
  const { getHandler } = host as Partial<ExecutionContext>;
  const context = host as ExecutionContext;
  // The context of `GqlExecutionContext` contains the arguments of the field instead of those of the call.
  if (Array.isArray(host.getArgs()) && getHandler !== undefined && (context.getHandler() as unknown) !== null) {
    const found = searchRequest(context);
    if (found?.result !== undefined) return found;
  }
  return searchDecided(args) ?? decidedOf(findEarly(asObject(args[0])));
}

function decidedFor(request: object): ReturnType<typeof decidedOf> {
  return decidedOf(requestOfCall(request)) ?? decidedOf(requestOfRaw(request)) ?? decidedOf(findEarly(request));
}

function argsOf(host: ArgumentsHost): readonly unknown[] {
  const args: unknown = host.getArgs();
  if (Array.isArray(args)) return args;
  return Array.from({ length: MOST_ARGUMENTS }, (_, index): unknown => host.getArgByIndex(index));
}

function isHost(call: object): call is ArgumentsHost {
  const { getArgs, getArgByIndex, getType } = call as Partial<ArgumentsHost>;
  return [getArgs, getArgByIndex, getType].every((each) => typeof each === 'function');
}
