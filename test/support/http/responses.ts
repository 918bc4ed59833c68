import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** A response of Node, of which nothing goes over a network. */
export const nodeResponse = () => new ServerResponse(new IncomingMessage(new Socket()));

/** A response that notes its headers. */
export class NotingResponse {
  readonly headers: Record<string, string> = {};

  set(name: string, value: string): void {
    this.headers[name] = value;
  }

  setHeader(name: string, value: string): void {
    this.set(name, value);
  }
}

/** What is left of each limit that a response names in its `RateLimit` header. */
export function leftOf({ headers }: Response): Record<string, number> {
  const items = (headers.get('ratelimit') ?? '').matchAll(/"([^"]+)";r=(\d+)/g);
  return Object.fromEntries([...items].map(([, name, remaining]) => [name, Number(remaining)]));
}
