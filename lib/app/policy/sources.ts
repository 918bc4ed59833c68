import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { policyMessages } from '../../engine/errors/messages/rates.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import type { PolicyFunction } from '../config/policy.js';
import { PlainValue } from './located.js';
import { Problems } from './problems.js';
import { type PolicyReading, readPolicyInSlices } from './read-policy.js';
import { MOST_BYTES, readText } from './read-text.js';

/** The source of a policy. */
export interface PolicySource {
  /** For messages. */
  readonly name: string;
  /** The default time between two checks, in milliseconds. */
  readonly everyMs: number;
  /** Reads the current version. */
  read(): Promise<PolicyReading>;
  /**
   * Checks if the source has changed since the last read: `undefined` if not, `'changing'` if it must be checked again soon.
   */
  look(): Promise<PolicyReading | 'changing' | undefined>;
  /** Aborts the current read. */
  close(): void;
}

/** The content of a file, or the reason why it cannot be read. */
type Content = { readonly bytes: Buffer } | { readonly error: string };

/**
 * A policy in a file. The file is checked by name at regular intervals, so it may be changed in any way: written to, replaced, or reached
 * through a symbolic link that is redirected. If two checks in a row find different states, it is still being written.
 */
export class FilePolicySource implements PolicySource {
  readonly everyMs = 1000;
  /** The stamp of the file when it was read, and at the last check. */
  private readStamp = '';
  private lastStamp = '';
  private digest = '';
  /** The real folder of the file when it was first read. */
  private folder: string | undefined;

  /** The absolute path, independent of the working directory. */
  private readonly path: string;

  constructor(readonly name: string) {
    this.path = resolve(name);
  }

  async read(): Promise<PolicyReading> {
    this.lastStamp = await stampOf(this.path);
    this.readStamp = this.lastStamp;
    const content = await this.content();
    this.digest = digestOf(content);
    return this.readingOf(content);
  }

  async look(): Promise<PolicyReading | 'changing' | undefined> {
    const stamp = await stampOf(this.path);
    const isSettled = stamp === this.lastStamp;
    this.lastStamp = stamp;
    if (stamp === this.readStamp) return undefined;
    if (!isSettled) return 'changing';
    const content = await this.content();
    // The file was written to in the meantime.
    if ((await stampOf(this.path)) !== stamp) return 'changing';
    this.readStamp = stamp;
    const digest = digestOf(content);
    if (digest === this.digest) return undefined;
    this.digest = digest;
    return this.readingOf(content);
  }

  close(): void {}

  /**
   * Reads the file, if it is still in its folder or at its first real location. Messages quote the invalid parts of a file, and people who
   * may write to the folder may not be allowed to read every file that the process can read.
   */
  private async content(): Promise<Content> {
    try {
      const file = await realpath(this.path);
      this.folder ??= dirname(file);
      const own = await realpath(dirname(this.path));
      if (![own, this.folder].some((folder) => isWithin(file, folder))) return { error: policyMessages.elsewhere() };
      return await contentOf(file);
    } catch (error) {
      return { error: reasonOf(error) };
    }
  }

  private async readingOf(content: Content): Promise<PolicyReading> {
    const { name } = this;
    const problems = new Problems();
    if ('error' in content) {
      problems.add({ name, path: '' }, policyMessages.unreadable(content.error));
      return { problems: problems.list };
    }
    return readPolicyInSlices(name, await readText(name, content.bytes, problems), problems);
  }
}

function isWithin(file: string, folder: string): boolean {
  const path = relative(folder, file);
  return path !== '' && !isAbsolute(path) && path.split(sep)[0] !== '..';
}

/** Identifies a version of a file by inode, size and times, without reading it. */
async function stampOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return reasonOf(error);
  }
}

/** Opening a pipe without a writer would block and keep the process alive. Windows doesn't have this flag. */
const READ_AT_ONCE =
  constants.O_RDONLY |
  ((constants.O_NONBLOCK as number | undefined) ?? 0) |
  // Links have already been resolved.
  ((constants.O_NOFOLLOW as number | undefined) ?? 0);

/** Reads a file, but stops once it is known to be too large. */
async function contentOf(path: string): Promise<Content> {
  try {
    const file = await open(path, READ_AT_ONCE);
    try {
      const buffer = Buffer.alloc(MOST_BYTES + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) return { bytes: buffer.subarray(0, length) };
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    return { error: reasonOf(error) };
  }
}

function digestOf(content: Content): string {
  return 'error' in content ? content.error : createHash('sha256').update(content.bytes).digest('hex');
}

/** A function that returns a policy, called with a deadline. */
export class FunctionPolicySource implements PolicySource {
  readonly name = 'policy.source()';
  readonly everyMs = 30_000;
  /** Aborts the current call. */
  private asking: AbortController | undefined;

  constructor(
    private readonly ask: PolicyFunction,
    private readonly timeoutMs: number,
  ) {}

  async read(): Promise<PolicyReading> {
    const { name } = this;
    const problems = new Problems();
    try {
      return await readPolicyInSlices(name, new PlainValue(await this.answer(), name), problems);
    } catch (error) {
      problems.add({ name, path: '' }, policyMessages.failed(reasonOf(error)));
      return { problems: problems.list };
    }
  }

  look(): Promise<PolicyReading> {
    return this.read();
  }

  close(): void {
    this.asking?.abort();
  }

  /** The result of the function, unless it takes too long. Later results are ignored. */
  private async answer(): Promise<unknown> {
    const asking = new AbortController();
    this.asking = asking;
    const reason = new Error(policyMessages.timedOut(this.timeoutMs));
    const timer = setTimeout(() => asking.abort(reason), this.timeoutMs);
    const { signal } = asking;
    try {
      const aborted = new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
      return await Promise.race([this.ask(signal), aborted]);
    } finally {
      clearTimeout(timer);
      // If the function threw synchronously, the rejection by an abort would be unhandled.
      this.asking = undefined;
    }
  }
}
