import { policyMessages } from '../../engine/errors/messages/policy.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import type { PolicySource } from './policy-source.js';
import type { PolicyReading } from './read-policy.js';

/** When to check again a file that is being written, in milliseconds. */
const SETTLE_MS = 200;

/** Checks a source again and again, one look at a time. */
export class PolicyWatch {
  private timer: NodeJS.Timeout | undefined;
  private closed = false;

  constructor(
    private readonly source: PolicySource,
    private readonly everyMs: number,
    private readonly onReading: (reading: PolicyReading) => void | Promise<void>,
  ) {}

  start(): void {
    this.next(this.everyMs);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private next(ms: number): void {
    if (!this.closed) this.timer = setTimeout(() => void this.look(), ms).unref();
  }

  private async look(): Promise<void> {
    let found: PolicyReading | 'changing' | undefined;
    try {
      found = await this.source.look();
      if (this.closed) return;
      if (found !== undefined && found !== 'changing') await this.onReading(found);
    } catch (error) {
      // Whatever it is, the next version may be right.
      const message = policyMessages.unreadable(reasonOf(error));
      await this.onReading({ problems: [{ file: this.source.name, path: '', message }] });
    }
    this.next(found === 'changing' ? Math.min(SETTLE_MS, this.everyMs) : this.everyMs);
  }
}
