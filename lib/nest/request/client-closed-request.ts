import { HttpException } from '@nestjs/common';
import { messages } from '../../engine/errors/messages/general.js';

/** The status that nginx uses for a request whose client did not wait for the response. */
const CLIENT_CLOSED_REQUEST = 499;

/** Refuses a request whose response no longer has a reader. */
export function clientClosedRequest(): HttpException {
  return new HttpException(messages.clientClosedRequest(), CLIENT_CLOSED_REQUEST);
}
