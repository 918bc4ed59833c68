import { ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { logger, OnceLogger } from '../../engine/errors/logger.js';
import { messages } from '../../engine/errors/messages/general.js';
import { connectionOf } from '../../app/transports/connection.js';

/** The methods that set headers, of Fastify's and of Node's responses. */
interface Headed {
  readonly header?: unknown;
  readonly setHeader?: unknown;
}

/** Warns, once per app, about HTTP adapters whose responses lack members that limits need. Responses of other transports may lack them. */
export class HiddenResponses {
  private readonly log = new OnceLogger(logger);

  /** Checks a response that should receive headers. */
  warnOfHeaders(response: object, context: ExecutionContext): void {
    if (response instanceof ServerResponse) return;
    const { header, setHeader }: Headed = response;
    if (typeof header === 'function' || typeof setHeader === 'function') return;
    if (isHidden(response, context)) this.log.warn(messages.hidesHeaders(nameOf(response)));
  }

  /** Checks a response whose end has to be known. */
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
