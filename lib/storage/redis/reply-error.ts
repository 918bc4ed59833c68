/** The code at the start of every error reply of Redis, such as `NOPERM`. Other errors of a client have none. */
const CODE = /^[A-Z][A-Z0-9]+ /;

/** Returns true if the server replied with an error, for example because of a missing permission. Otherwise the connection failed. */
export function isErrorReply(error: unknown): error is Error {
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown };
  return name === 'ReplyError' || (typeof message === 'string' && CODE.test(message));
}

/** The message of an error. The error may come from another realm, as in a test runner. */
export function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null)?.message);
}

/** Reads a reply of fields and values: a list, or an object with RESP3. */
export function pairsOf(reply: unknown): [string, string][] {
  if (!Array.isArray(reply)) return Object.entries(reply as Record<string, string>);
  return Array.from({ length: reply.length / 2 }, (_, index) => [
    String(reply[2 * index]),
    String(reply[2 * index + 1]),
  ]);
}

/** A whole number from a connection that returns numbers as text. */
const TEXT = /^(?:0|-?[1-9]\d{0,15})$/;

/** Reads a whole number from a reply; `undefined` if it isn't one. */
export function readWholeNumber(given: unknown): number | undefined {
  const value = typeof given === 'string' && TEXT.test(given) ? Number(given) : given;
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}
