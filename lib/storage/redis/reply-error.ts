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
