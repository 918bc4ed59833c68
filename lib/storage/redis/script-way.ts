import { isErrorReply, messageOf } from './reply-error.js';

/** After a server forgot the script, at most this many runs are sent with the script before its hash is tried again. */
const MOST_RUNS_BY_EVAL = 1000;
/** The number of runs by hash after which a server counts as one that keeps the script. */
const SETTLED = 100;

/** The way in which one server gets a script. */
export class ScriptWay {
  /** A load that is on its way. */
  loading: Promise<void> | undefined;
  /**
   * The reason why loading is useless: the server rejected it, or forgot the script immediately. EVAL contains the script, and usually
   * caches it.
   */
  refusal: Error | undefined;
  /** The number of the last load or EVAL that the server answered; 0 if there was none. */
  givenAt = 0;
  private forgottenAt = 0;
  private runsByEval = 0;
  private left = 0;
  private byHash = 0;

  /** Returns true if the next run is sent with the script right away. */
  skipsHash(): boolean {
    if (this.left > 0) {
      this.left--;
      return true;
    }
    this.byHash++;
    return false;
  }

  /** Called if the server no longer knows the script that it got. Its hash is tried again later, after longer and longer intervals. */
  forgot(): void {
    if (this.forgottenAt === this.givenAt) return;
    this.forgottenAt = this.givenAt;
    if (this.byHash > SETTLED) this.runsByEval = 0;
    this.byHash = 0;
    this.runsByEval = Math.min(MOST_RUNS_BY_EVAL, 2 * this.runsByEval + 1);
    this.left = this.runsByEval;
  }

  /** Called if the server doesn't run scripts by their hash. */
  refusedHash(): void {
    this.left = MOST_RUNS_BY_EVAL;
  }
}

/** True if a server doesn't know the hash of a script, and so has run nothing. */
export function isNoScript(error: unknown): error is Error {
  return /^(?:ERR )?NOSCRIPT\b/.test(messageOf(error));
}

/** True if a server refused the command itself, and so has run nothing: its user may not send it, or the command doesn't exist. */
export function isRefused(error: unknown, command: 'evalsha' | 'eval'): boolean {
  const refusal = new RegExp(`^(?:NOPERM .*'${command}'|ERR unknown command ['"\`]?${command}\\b)`, 'i');
  const unsupported = new RegExp(
    `^ERR [^:]*\\b${command}\\b[^:]*\\b(?:not (?:allowed|supported|permitted)|disabled)`,
    'i',
  );
  const message = messageOf(error);
  return refusal.test(message) || unsupported.test(message);
}

/** Errors about the server or the user, which any command may get. */
const OF_ANY_COMMAND =
  /^(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOAUTH|NOREPLICAS|OOM|READONLY|TRYAGAIN|WRONGPASS) /;

/** True if a server's reply to `SCRIPT LOAD` means that it doesn't load scripts. */
export function isLoadRefused(error: unknown): error is Error {
  return isErrorReply(error) && !OF_ANY_COMMAND.test(error.message);
}
