import { EventEmitter } from 'node:events';

/** The part of a response of Node that tells how it ends. */
export class Connection extends EventEmitter {
  destroyed = false;
  statusCode?: number = 200;
  headersSent = false;
  writableFinished?: boolean = false;
  writableEnded?: boolean = false;
  shouldKeepAlive?: boolean = true;

  /** The whole answer is on its way. */
  end(): void {
    Object.assign(this, { headersSent: true, writableEnded: true });
    this.emit('prefinish');
  }

  /** The client has the whole answer. */
  answer(statusCode = 200): void {
    this.leave({ statusCode, headersSent: true, writableFinished: true, writableEnded: true });
  }

  /** The client leaves, whatever it has of the answer. */
  leave(state: { readonly [Name in keyof Connection]?: Connection[Name] | undefined } = {}): void {
    Object.assign(this, state, { destroyed: true });
    this.emit('close');
  }
}
