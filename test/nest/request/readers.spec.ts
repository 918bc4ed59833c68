import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller } from '@nestjs/common';
import {
  RateLimit,
  RateLimitConfigError,
  type RateLimitModuleOptions,
  type RequestReader,
} from '../../../lib/index.js';
import { AppCalls, callOf } from './app-calls.js';

@Controller()
class Routes {
  @RateLimit({ name: 'ten', algo: 'fixed-window', rate: 10, interval: '1m' })
  handle() {}
}

const chat: RequestReader = { transport: 'chat', read: () => ({ request: { ip: '203.0.113.1' } }) };

describe('the readers of transports', () => {
  let app: AppCalls | undefined;
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  const start = async (readers?: unknown) =>
    (app = await AppCalls.start([Routes], { readers } as unknown as RateLimitModuleOptions));
  it('are those of the library unless the app has others', async () => {
    const started = await start();
    const known = ['http', 'graphql', 'ws', 'rpc'];
    expect(known.map((transport) => started.readerOf(transport).transport)).toEqual(known);
    const unknown = started.readerOf('chat');
    expect(unknown.read(callOf(Routes, 'handle', [{ ip: '203.0.113.1' }], 'chat'))).toEqual({});
  });

  it('may be of further transports, or take the place of known ones', async () => {
    const http: RequestReader = { ...chat, transport: 'http', call: () => ({}), refuse: () => new Error('refused') };
    const started = await start([chat, http]);
    expect([started.readerOf('chat'), started.readerOf('http')]).toEqual([chat, http]);
    expect(started.readerOf('rpc').transport).toBe('rpc');
  });

  it('may be classes, of which the app has an instance or gets one', async () => {
    class ChatReader {
      readonly transport = 'chat';

      read() {
        return {};
      }
    }
    expect((await start([ChatReader])).readerOf('chat')).toBeInstanceOf(ChatReader);
  });

  it.each([
    ['a transport that is no text', { ...chat, transport: 7 }],
    ['a transport without a name', { ...chat, transport: '' }],
    ['no function that reads', { transport: 'chat', read: {} }],
    ['a call that is no function', { ...chat, call: {} }],
    ['a refusal that is no function', { ...chat, refuse: null }],
    ['nothing', undefined],
  ])('are refused at start-up: %s', async (_, reader) => {
    const starting = start([chat, reader]);
    await expect(starting).rejects.toThrow(RateLimitConfigError);
    await expect(starting).rejects.toThrow(
      /^RateLimitModule\.readers: expected a list of RequestReaders, each an object or an injectable class.*, received /s,
    );
  });

  it('are refused at start-up where two are of one transport', async () => {
    await expect(start([chat, { ...chat }])).rejects.toThrow(
      "two readers have the transport 'chat'. Add one for each transport",
    );
  });
});
