import { describe, expect, it } from '@jest/globals';
import {
  BadGatewayException,
  GatewayTimeoutException,
  InternalServerErrorException,
  RequestTimeoutException,
  ServiceUnavailableException,
} from '@nestjs/common';
import { TimeoutError } from 'rxjs';
import type { Outcome } from '../../../lib/index.js';
import { leaseEndOf } from '../../../lib/nest/request/lease-end.js';

const failed = { failed: true, aborted: false, context: undefined as never };
const ended = (outcome: Partial<Outcome>) => leaseEndOf({ ...failed, ...outcome });

function fail(): never {
  throw new Error('nobody can tell');
}

function timeoutWithout(member: string): TimeoutError {
  return Object.assign(new TimeoutError(), { [member]: () => fail() });
}

describe('the end of a request says', () => {
  it.each([
    [{ failed: false, statusCode: 200 }, 'completed'],
    [{ failed: false, statusCode: 503 }, 'completed'],
    [{ aborted: true }, 'aborted'],
    [{ aborted: true, failed: false }, 'aborted'],
    [{ aborted: true, statusCode: 503 }, 'aborted'],
    [{}, 'ignored'],
    [{ statusCode: 404 }, 'ignored'],
    [{ statusCode: 429 }, 'ignored'],
    [{ statusCode: 500 }, 'ignored'],
    [{ statusCode: 408 }, 'dropped'],
    [{ statusCode: 503 }, 'dropped'],
    [{ statusCode: 504 }, 'dropped'],
  ] as const)('of %j that it was %s', (outcome, said) => expect(ended(outcome)).toBe(said));
});

describe('the error of a handler says', () => {
  it.each([
    ['of a bug, nothing', new TypeError('bug'), 'ignored'],
    ['of an answer that is no overload, nothing', new InternalServerErrorException(), 'ignored'],
    ['of what is farther on and broken, nothing', new BadGatewayException(), 'ignored'],
    ['of a time-out of its own that work was dropped', new RequestTimeoutException(), 'dropped'],
    ['of an overload that work was dropped', new ServiceUnavailableException(), 'dropped'],
    ['of a time-out farther on that work was dropped', new GatewayTimeoutException(), 'dropped'],
    ['of a signal that ran out that work was dropped', new DOMException('late', 'TimeoutError'), 'dropped'],
    ['of a time-out of RxJS that work was dropped', new TimeoutError(), 'dropped'],
    ['of a signal that somebody ended, nothing', new DOMException('left', 'AbortError'), 'ignored'],
    ['nothing, if it is no error', { name: 'TimeoutError' }, 'ignored'],
    ['nothing, if it is no object', 'TimeoutError', 'ignored'],
    ['nothing, if it is null', null, 'ignored'],
    ['nothing, if it has no status', { getStatus: undefined }, 'ignored'],
    ['nothing, if its status is no function', { getStatus: 503 }, 'ignored'],
    ['of a time-out whose status cannot be told that work was dropped', timeoutWithout('getStatus'), 'dropped'],
    ['nothing, if its status cannot be told', { getStatus: () => fail() }, 'ignored'],
    [
      'nothing, if its name cannot be told',
      Object.defineProperty(new Error(), 'name', { get: () => fail() }),
      'ignored',
    ],
  ] as const)('%s', (_, error, said) => expect(ended({ error })).toBe(said));

  it('less than the status that was answered', () => {
    expect(ended({ statusCode: 500, error: new GatewayTimeoutException() })).toBe('ignored');
    expect(ended({ statusCode: 504, error: new InternalServerErrorException() })).toBe('dropped');
  });

  it('that work was dropped by a time limit, whatever is answered', () => {
    expect(ended({ statusCode: 500, error: new TimeoutError() })).toBe('dropped');
  });
});
