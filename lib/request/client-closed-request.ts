import { HttpException } from '@nestjs/common';
import { messages } from '../errors/messages/general.js';

/** The status that nginx gave to a request whose client did not wait for the answer. */
const CLIENT_CLOSED_REQUEST = 499;

/** Refuses a request whose answer has no reader any more. */
export function clientClosedRequest(): HttpException {
  return new HttpException(messages.clientClosedRequest(), CLIENT_CLOSED_REQUEST);
}
