import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { LimitedRequest } from '../../lib/nest/request/limited-request.js';
import { keepRequest, requestOfCall } from '../../lib/nest/request/request-of-call.js';

const known = (name: string) => ({ name }) as unknown as LimitedRequest;
const message = () => new IncomingMessage(new Socket());

const calls: [string, () => object][] = [
  ['a request of Node or Express', message],
  ['a request of Fastify', () => ({ raw: message() })],
  ['a frozen request', () => Object.freeze(message())],
  ['a request with frozen headers', () => Object.assign(message(), { rawHeaders: Object.freeze(['host', 'a.test']) })],
  ['a request without raw headers', () => Object.assign(message(), { rawHeaders: undefined })],
  ['an object that only looks like a request', () => ({ rawHeaders: Object.freeze([]) })],
  ['a list of arguments', () => [{}, {}]],
  ['any other object', () => ({ info: true })],
];

describe('what is known of a call', () => {
  it.each(calls)('is found by %s, and by no other', (_, make) => {
    const [one, other] = [make(), make()];
    keepRequest(one, known('one'));
    expect(requestOfCall(one)).toMatchObject({ name: 'one' });
    expect(requestOfCall(other)).toBeUndefined();
    keepRequest(other, known('other'));
    expect([requestOfCall(one), requestOfCall(other)]).toMatchObject([{ name: 'one' }, { name: 'other' }]);
  });

  it.each(calls)('is neither shown nor copied with %s', (_, make) => {
    const call = make();
    const shown = inspect(call, { showHidden: false });
    keepRequest(call, known('secret'));
    expect(inspect(call)).toBe(shown);
    expect(requestOfCall({ ...call })).toBeUndefined();
  });

  const wrapped: [string, (request: object) => object][] = [
    ['an object that inherits from the request', (request) => Object.create(request) as object],
    ['a proxy of the request', (request) => new Proxy(request, {})],
  ];
  it.each(wrapped)('is kept apart from that of %s', (_, wrap) => {
    for (const make of [message, () => ({ raw: message() })]) {
      const request = make();
      const [early, late] = [wrap(request), wrap(request)];
      keepRequest(early, known('early'));
      expect(requestOfCall(request)).toBeUndefined();
      keepRequest(request, known('request'));
      expect(requestOfCall(late)).toBeUndefined();
      keepRequest(late, known('late'));
      expect([early, request, late].map((call) => requestOfCall(call))).toMatchObject([
        { name: 'early' },
        { name: 'request' },
        { name: 'late' },
      ]);
    }
  });

  it.each([
    ['Node or Express', message, (call: object) => call],
    ['Fastify', () => ({ raw: message() }), (call: object) => (call as { raw: object }).raw],
  ])('is found, where it has to be, after the raw headers of a request of %s were replaced', (_, make, rawOf) => {
    const call = make();
    keepRequest(call, known('one'), true);
    Object.assign(rawOf(call), { rawHeaders: ['host', 'a.test'] });
    expect(requestOfCall(call)).toMatchObject({ name: 'one' });
  });

  it.each([
    ['Node or Express', message, (call: object) => call],
    ['Fastify', () => ({ raw: message() }), (call: object) => (call as { raw: object }).raw],
  ])('goes with the raw headers of a request of %s, where it need not be found', (_, make, rawOf) => {
    const call = make();
    keepRequest(call, known('one'));
    Object.assign(rawOf(call), { rawHeaders: [] });
    expect(requestOfCall(call)).toBeUndefined();
  });

  it('is found after the request was frozen', () => {
    const request = message();
    keepRequest(request, known('one'));
    expect(requestOfCall(Object.freeze(request))).toMatchObject({ name: 'one' });
  });
});
