import { HttpException } from '@nestjs/common';
import { messages } from '../errors/messages.js';

/** The status that nginx gave to a request whose client did not wait for the answer. */
const CLIENT_CLOSED_REQUEST = 499;

/** Refuses what would be done for nobody. */
export function clientLeft(): HttpException {
  return new HttpException(messages.clientLeft(), CLIENT_CLOSED_REQUEST);
}
