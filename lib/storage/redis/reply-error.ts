/** The code with which every error reply of Redis begins, such as `NOPERM`; no other error of a client has one. */
const CODE = /^[A-Z][A-Z0-9]+ /;

/** Whether the server answered with an error, such as for a missing right. Otherwise the connection failed. */
export function isErrorReply(error: unknown): error is Error {
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown };
  return name === 'ReplyError' || (typeof message === 'string' && CODE.test(message));
}

/** The message of an error. It may come from another realm, as in a test runner. */
export function messageOf(error: unknown): string {
  return String((error as { message?: unknown } | null)?.message);
}

/** A reply of fields and values: a list, or with RESP3 an object. */
export function pairsOf(reply: unknown): [string, string][] {
  if (!Array.isArray(reply)) return Object.entries(reply as Record<string, string>);
  return Array.from({ length: reply.length / 2 }, (_, index) => [
    String(reply[2 * index]),
    String(reply[2 * index + 1]),
  ]);
}

/** A whole number from a connection that is set to return numbers as text. */
const TEXT = /^(?:0|-?[1-9]\d{0,15})$/;

/** Reads a whole number of a reply; `undefined` if it is not one. */
export function readWholeNumber(given: unknown): number | undefined {
  const value = typeof given === 'string' && TEXT.test(given) ? Number(given) : given;
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}
