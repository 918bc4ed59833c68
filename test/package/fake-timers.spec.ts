import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it, jest } from '@jest/globals';
import NodeEnvironment from '../support/jest/environment.mjs';

it('the timers that a spec replaces have no part in a connection that ends meanwhile', async () => {
  const server = createServer((socket) => void socket.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(client, 'connect');
  jest.useFakeTimers();
  try {
    client.end();
    await once(client.resume(), 'close');
    await turn();
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
    server.close();
  }
});

it('a fake timer that a spec spied on is gone with the spec', async () => {
  const { setTimeout: real } = globalThis;
  const environment = new NodeEnvironment({ projectConfig: { fakeTimers: {} } }, { docblockPragmas: {} });
  environment.fakeTimersModern.useFakeTimers();
  environment.moduleMocker.spyOn(globalThis, 'setTimeout');
  environment.fakeTimersModern.useRealTimers();
  await environment.teardown();
  expect(globalThis.setTimeout).toBe(real);
});
