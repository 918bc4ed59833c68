/** A call that wasn't sent, since its turn would come later than `maxWait` allows. */
export class PacedError extends Error {
  /** `'PacedError'`. */
  override readonly name = 'PacedError';
  /** The error's code: `'SLUICE_NOT_SENT'`. */
  readonly code = 'SLUICE_NOT_SENT';

  /** Whole milliseconds until the server is expected to allow the call. */
  readonly retryAfterMs: number;

  /** Makes an error for a call that can be sent after a wait in milliseconds. */
  constructor(retryAfterMs: number) {
    super(`not sent: the server allows the next call in ${Math.ceil(retryAfterMs / 1000)} s`);
    this.retryAfterMs = Math.ceil(retryAfterMs);
  }
}
