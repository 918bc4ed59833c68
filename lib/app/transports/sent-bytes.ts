import type { ClosableResponse } from './connection.js';
import { getOrMake } from '../../engine/util/objects.js';

interface NodeSocket {
  /** The number of written bytes, including those that are still queued. */
  readonly bytesWritten?: number;
  readonly destroyed?: boolean;
  readonly _handle?: { readonly bytesWritten?: number; readonly writeQueueSize?: number } | null;
  readonly _destroy?: (this: NodeSocket, error: Error | null, callback: (error?: Error | null) => void) => void;
}

/** The stream of an HTTP/2 response. */
interface NodeStream {
  readonly _write?: (
    this: NodeStream,
    chunk: Uint8Array | string,
    encoding: BufferEncoding,
    callback: (error?: Error | null) => void,
  ) => void;
}

/** Node's response, with the parts that show how much of it was sent. */
interface NodeResponse extends ClosableResponse {
  /** `null` while the response waits behind those of earlier requests on the same connection (pipelining). */
  readonly socket?: NodeSocket | null;
  /** The header of an HTTP/1 response, once it is written. */
  readonly _header?: string | null;
  readonly stream?: NodeStream;
  once(event: 'close', listener: () => void): unknown;
  once(event: 'socket', listener: (socket: NodeSocket) => void): unknown;
  prependOnceListener?(event: 'finish', listener: () => void): unknown;
}

/** Tells how many bytes of a response's body have gone through the socket; `undefined` if that cannot be known. */
export type SentBytes = () => number | undefined;

const known = new WeakMap<ClosableResponse, SentBytes>();
/** How much had gone through sockets when they were closed: then their handles are gone. */
const closedAt = new WeakMap<NodeSocket, { bytes: number | undefined }>();

/**
 * Counts the sent bytes of a response from now on, after any compression. Calls that share the response share the count.
 */
export function countSent(response: ClosableResponse): SentBytes {
  return getOrMake(known, response, () => counterOf(response as NodeResponse));
}

function counterOf(response: NodeResponse): SentBytes {
  if (response.prependOnceListener === undefined) return unknown;
  return response.stream === undefined ? ofSocket(response) : ofStream(response.stream);
}

function unknown(): undefined {
  return undefined;
}

/** HTTP/1: the bytes that the socket sends between the start and the end of the response, without the header. */
function ofSocket(response: NodeResponse): SentBytes {
  let begun: { readonly socket: NodeSocket; readonly before: number | undefined } | undefined;
  let finishedAt: number | undefined;
  const begin = (socket: NodeSocket) => {
    // Nothing more is sent to a client that has left.
    if (socket.destroyed === true) return;
    begun = { socket, before: socket.bytesWritten };
    watchClose(socket);
  };
  if (response.socket) begin(response.socket);
  else response.once('socket', begin);
  // Before Node begins to send the next response of the connection. It also calls responses finished whose socket was closed.
  response.prependOnceListener!('finish', () => {
    if (begun?.socket.destroyed !== true) finishedAt = begun?.socket.bytesWritten;
  });
  return () => {
    // A response that never had its turn, or whose client had left.
    if (begun === undefined) return 0;
    const { socket, before } = begun;
    const { _header: header } = response;
    const now = finishedAt ?? throughOf(socket);
    if (before === undefined || now === undefined) return undefined;
    return Math.max(0, now - before - (header?.length ?? 0));
  };
}

/** The bytes that have left a socket, without those that are queued for a slow client. */
function throughOf(socket: NodeSocket): number | undefined {
  const { _handle: handle } = socket;
  if (handle?.bytesWritten === undefined) return closedAt.get(socket)?.bytes;
  return handle.bytesWritten - (handle.writeQueueSize ?? 0);
}

/** Keeps the number of sent bytes when the socket closes. */
function watchClose(socket: NodeSocket): void {
  const { _destroy: destroy } = socket;
  if (closedAt.has(socket) || destroy === undefined) return;
  const kept = { bytes: undefined as number | undefined };
  closedAt.set(socket, kept);
  const keepAndDestroy: typeof destroy = (error, callback) => {
    kept.bytes = throughOf(socket);
    destroy.call(socket, error, callback);
  };
  Object.assign(socket, { _destroy: keepAndDestroy });
}

/**
 * HTTP/2: counts the chunks that are passed to the stream, each once the previous one was sent. `_writev` would pass all queued chunks
 * at once, although a slow client may never receive them.
 */
function ofStream(stream: NodeStream): SentBytes {
  const { _write: write } = stream;
  if (write === undefined) return unknown;
  let bytes = 0;
  const countAndWrite: typeof write = (chunk, encoding, callback) => {
    bytes += typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : chunk.byteLength;
    write.call(stream, chunk, encoding, callback);
  };
  Object.assign(stream, { _writev: undefined, _write: countAndWrite });
  return () => bytes;
}
