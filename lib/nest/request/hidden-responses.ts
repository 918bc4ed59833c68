import { ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { connectionOf } from '../../app/transports/connection.js';

/** The methods of a response that set headers: of Fastify and of Node. */
interface Headed {
  readonly header?: unknown;
  readonly setHeader?: unknown;
}

/** Warns, once an app, of HTTP adapters whose responses hide what limits need of them. Other transports may have no more. */
export class HiddenResponses {
  private readonly log = new OnceLogger(logger);

  /** Looks at a response that is to get headers. */
  warnOfHeaders(response: object, context: ExecutionContext): void {
    if (response instanceof ServerResponse) return;
    const { header, setHeader }: Headed = response;
    if (typeof header === 'function' || typeof setHeader === 'function') return;
    if (isHidden(response, context)) this.log.warn(messages.hidesHeaders(nameOf(response)));
  }

  /** Looks at a response whose end something waits for. */
  warnOfEnd(response: object | undefined, context: ExecutionContext): void {
    if (response !== undefined && isHidden(response, context)) this.log.warn(messages.hidesEnd(nameOf(response)));
  }
}

function isHidden(response: object, context: ExecutionContext): boolean {
  return context.getType() === 'http' && connectionOf(response) === undefined;
}

function nameOf({ constructor }: object): string {
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class without a name';
}
