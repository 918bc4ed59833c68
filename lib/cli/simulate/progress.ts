import type { Writable } from 'node:stream';
import { showMs } from '../../engine/util/printable.js';

/** Nothing is shown of what is over sooner. */
const AFTER_MS = 500;
const EVERY_MS = 200;
const CLEARED = '\r\u001B[K';

/** One line on a terminal about how much of the input has been read. */
export class Progress {
  private readonly began: number;
  private last = -Infinity;
  private read = 0;
  private isShown = false;

  /** @param total the bytes of the input; `undefined` if it ends nobody knows when */
  constructor(
    private readonly stream: Writable & { readonly isTTY?: boolean },
    private readonly total: number | undefined,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.began = now();
  }

  add(bytes: number): void {
    this.read += bytes;
    if (this.stream.isTTY !== true) return;
    const now = this.now();
    if (now - this.began < AFTER_MS || now - this.last < EVERY_MS) return;
    this.last = now;
    this.isShown = true;
    this.stream.write(CLEARED + this.text(now - this.began));
  }

  end(): void {
    if (this.isShown) this.stream.write(CLEARED);
  }

  private text(passedMs: number): string {
    const { read, total } = this;
    if (total === undefined || total < read) return `${sizeOf(read)} read`;
    const left = (passedMs / read) * (total - read);
    return `${Math.floor((100 * read) / total)}% of ${sizeOf(total)}, ${showMs(Math.ceil(left / 1000) * 1000)} left`;
  }
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}
