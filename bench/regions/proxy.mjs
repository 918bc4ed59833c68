/** Stands before a server as far away as another continent. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** @returns its `url`; `cut()` ends all connections and refuses new ones until `mend()`; `close()` */
export async function startProxy({ host, port }, delayMs) {
  const sockets = new Set();
  let isCut = false;
  const pipe = (from, to) => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (data) => setTimeout(() => to.destroyed || to.write(data), delayMs));
    from.on('error', () => undefined);
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const drop = () => sockets.forEach((socket) => socket.destroy());
  const listener = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const server = connect(port, host);
    pipe(client, server);
    pipe(server, client);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    url: `redis://127.0.0.1:${listener.address().port}`,
    cut() {
      isCut = true;
      drop();
    },
    mend: () => (isCut = false),
    close() {
      drop();
      listener.close();
    },
  };
}
