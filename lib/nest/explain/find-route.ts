import { RateLimitConfigError } from '../../engine/errors/errors.js';
import { messages } from '../../engine/errors/messages/general.js';
import type { Handler, HandlerClasses } from '../../app/rules/handler-classes.js';
import { classNameOf, type HandlerClass } from '../../app/rules/namespaces.js';
import { isHandler } from '../../app/rules/route-names.js';
import type { RouteQuery } from './question.js';
import { LOCATION } from './query.js';

/** A method that requests call, and its class. */
export interface FoundRoute {
  readonly type: HandlerClass;
  readonly handler: Handler;
}

/** Finds the route of a question. Throws `RateLimitConfigError`, which lists the existing ones. */
export function findRoute({ controller, handler }: RouteQuery, classes: HandlerClasses): FoundRoute {
  const known = [...new Set(classes.known())].filter((type) => handlersOf(type, classes).size > 0);
  const found = known.filter((type) => type === controller || classNameOf(type) === controller);
  const [type, ...others] = found;
  if (others.length > 0) throw new RateLimitConfigError(messages.sameController(LOCATION, classNameOf(type!)));
  if (type === undefined) {
    const got = typeof controller === 'string' ? controller : classNameOf(controller);
    throw new RateLimitConfigError(messages.unknownController(LOCATION, got, known.map(classNameOf).toSorted()));
  }
  const handlers = handlersOf(type, classes);
  const method = handlers.get(handler);
  if (method === undefined) {
    throw new RateLimitConfigError(messages.unknownHandler(LOCATION, classNameOf(type), handler, [...handlers.keys()]));
  }
  return { type, handler: method };
}

function handlersOf(type: HandlerClass, classes: HandlerClasses): Map<string, Handler> {
  return new Map([...classes.handlers(type)].filter(([, handler]) => isHandler(handler)));
}
