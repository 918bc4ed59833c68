import { HttpException } from '@nestjs/common';
import { messages } from '../../engine/errors/messages/general.js';

/** The status that nginx uses if a client closed the connection before the response. */
const CLIENT_CLOSED_REQUEST = 499;

/** The exception for a request whose client has left. */
export function clientClosedRequest(): HttpException {
  return new HttpException(messages.clientClosedRequest(), CLIENT_CLOSED_REQUEST);
}
