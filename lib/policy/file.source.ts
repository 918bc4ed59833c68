import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { policyMessages } from '../errors/messages/policy.js';
import { reasonOf } from '../util/reason-of.js';
import type { PolicySource } from './policy-source.js';
import { Problems } from './problems.js';
import { type PolicyReading, readPolicy } from './read-policy.js';
import { MOST_BYTES, readText } from './read-text.js';

/** The bytes of a file, or why it cannot be read. */
type Content = { readonly bytes: Buffer } | { readonly error: string };

/**
 * A file. It is looked at by its name again and again, so it does not matter how it is changed: written to, replaced by another
 * one, or behind a symbolic link that is turned. What two looks do not find alike is still being written.
 */
export class FilePolicySource implements PolicySource {
  readonly everyMs = 1000;
  /** The file as it was when it was read, and as it was at the last look. */
  private readStamp = '';
  private lastStamp = '';
  private digest = '';
  /** The folder that the file really stood in when it was read first. */
  private folder: string | undefined;

  /** The file, wherever the process goes. */
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
    // It was written to after all.
    if ((await stampOf(this.path)) !== stamp) return 'changing';
    this.readStamp = stamp;
    const digest = digestOf(content);
    if (digest === this.digest) return undefined;
    this.digest = digest;
    return this.readingOf(content);
  }

  close(): void {}

  /**
   * Reads the file, if it still stands in its folder, or where it stood first: messages quote what is wrong in it, and whoever may write to
   * the folder may not read all that the process may.
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
    return readPolicy(name, await readText(name, content.bytes, problems), problems);
  }
}

function isWithin(file: string, folder: string): boolean {
  const path = relative(folder, file);
  return path !== '' && !isAbsolute(path) && path.split(sep)[0] !== '..';
}

/** Tells versions of a file apart without reading it: by inode, size and times. */
async function stampOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch (error) {
    return reasonOf(error);
  }
}

/** A pipe that nobody writes to would be waited for, and keep the process alive. Windows knows no such flag. */
const READ_AT_ONCE =
  constants.O_RDONLY |
  ((constants.O_NONBLOCK as number | undefined) ?? 0) |
  // Its links have been followed.
  ((constants.O_NOFOLLOW as number | undefined) ?? 0);

/** Reads a file, but no more of one that is too large than tells so. */
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
