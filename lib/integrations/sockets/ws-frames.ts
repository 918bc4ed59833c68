import { socketMessages } from '../../engine/errors/messages/sockets.js';
import { FrameGate } from './frame-gate.js';
import type { SocketChecks } from './socket-checks.js';
import type { WsClient } from './ws-handshakes.js';

const OPEN = 1;
/** The status code of a connection that broke the rules of its server. */
const POLICY_VIOLATION = 1008;

/** Events that a client causes: a ping or a pong costs as much as a message. */
const FRAMES: readonly unknown[] = ['message', 'ping', 'pong'];

/** Limits what a client of ws sends, before any listener. */
export function limitWsFrames(client: WsClient, checks: SocketChecks, closeAfter: number): void {
  const gate = new FrameGate(
    {
      get isOpen() {
        return client.readyState === OPEN;
      },
      decide: (data, frames) => checks.frame(client, data, frames),
      notify: (_, data) => client.send(JSON.stringify({ event: 'exception', data })),
      close: () => client.close(POLICY_VIOLATION, socketMessages.tooManyFrames()),
    },
    closeAfter,
  );
  // Whoever listens, and whenever: Nest, and the app in `handleConnection`.
  const emit = client.emit.bind(client);
  client.emit = (event, ...args) => {
    if (FRAMES.includes(event)) {
      const pass = () => void emit(event, ...args);
      // A pong that is refused still shows that the client is alive: apps end connections that send none.
      gate.frame(args[0], pass, event === 'pong' ? pass : undefined);
    }
    // A client may send and leave at once.
    else if (event === 'close') gate.inTurn(() => emit(event, ...args));
    else return emit(event, ...args);
    return true;
  };
}
