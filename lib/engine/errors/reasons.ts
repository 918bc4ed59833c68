/** The message of an error; anything else as text. Never throws, regardless of the thrown value. */
export function reasonOf(error: unknown): string {
  try {
    // Not `instanceof`: an error may come from another realm.
    const message: unknown =
      typeof error === 'object' && error !== null && 'message' in error ? error.message : undefined;
    return typeof message === 'string' ? message : String(error);
  } catch {
    return 'the thrown value has no text';
  }
}

/**
 * Throws the error with which the `import()` of an optional package failed. A bundler such as esbuild fails to build an app without the
 * package unless the import is followed by a `catch`.
 */
export function rethrow(error: unknown): never {
  throw error;
}

/** Error replies of Redis and Valkey, from 6.2 on, for a missing permission of the user, in a command or in a script. */
export const LACKS_A_RIGHT = /^NOPERM|ACL failure in script|user executing the script can't/;
/** Error replies that mean a missing or wrong password, and what clients make of them. */
export const REJECTS_LOGIN = /WRONGPASS|NOAUTH|invalid password/;

/** The names of secrets in connection strings. */
const SECRET_NAME = String.raw`["']?\w*(?:pass|pwd|secret|token|auth|credential|key)\w*["']?\s*`;
/** A secret with its name: `password=…`, `"password": "…"`. */
const NAMED = new RegExp(String.raw`(^|[^A-Za-z])(${SECRET_NAME}(?:=|:\s*["']))\s*.*$`, 'is');
/** The same within a message, in which a secret ends at the end of its word. */
const NAMED_WORD = new RegExp(String.raw`(^|[^A-Za-z])(${SECRET_NAME}=)\s*[^\s"']+`, 'gi');
/** The options of `redis-cli` that take a password. */
const OF_REDIS_CLI = /(\s(?:-a|--pass)[\s=]+)\S.*$/s;
/** `host:6379:password` */
const BEHIND_PORT = /^([\w.-]+:\d+:).+$/s;
/** The user and password of a URL, except those of an example. */
const IN_URL = /\b([a-z][a-z0-9+.-]*:\/\/)(?!\w*:<?password>?@)[^\s"']*@/gi;
/** A long text of letters and digits, such as a generated password, which isn't a host name. */
const GENERATED = /^(?=.*[A-Za-z])(?=.*\d)[A-Za-z0-9+/_]{20,}=*$/;

/**
 * Hides possible secrets in an invalid connection: shows a text up to the first possible secret, and only the option names of an object.
 */
export function withoutSecrets(connection: unknown): unknown {
  if (Array.isArray(connection)) return connection.map(withoutSecrets);
  if (typeof connection === 'string') return withoutSecretsOf(connection);
  if (typeof connection !== 'object' || connection === null) return connection;
  return Object.fromEntries(Object.keys(connection).map((option) => [option, '***']));
}

function withoutSecretsOf(text: string): string {
  if (GENERATED.test(text)) return '***';
  const named = text.replace(NAMED, '$1$2***').replace(OF_REDIS_CLI, '$1***').replace(BEHIND_PORT, '$1***');
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*:\/\/)?/i.exec(text)!;
  // The name may be part of a password, which ends at the last @.
  const isWithin = named !== text && !named.includes('@') && text.includes('@') && scheme !== '';
  return isWithin ? `${scheme}***` : named.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1***@');
}

/** Hides possible secrets in a message. */
export function withoutSecretsIn(message: string): string {
  return message.replace(NAMED_WORD, '$1$2***').replace(IN_URL, '$1***@');
}
