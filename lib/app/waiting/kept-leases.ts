import type { LeaseEnd } from '../../engine/algorithms/algorithm.js';

interface KeptLease {
  release(end?: LeaseEnd): Promise<void>;
}

/** The leases that are renewed while the work of their holders continues. */
export class KeptLeases {
  private readonly leases = new Set<KeptLease>();
  private readonly whenNone: (() => void)[] = [];

  add(lease: KeptLease): void {
    this.leases.add(lease);
  }

  /** Removes a lease whose units have been released, or whose store failed. */
  delete(lease: KeptLease): void {
    if (!this.leases.delete(lease) || this.leases.size > 0) return;
    for (const resolve of this.whenNone.splice(0)) resolve();
  }

  /** Waits until all work has ended, but at most `waitMs` milliseconds, and then releases the remaining leases. Never rejects. */
  async end(waitMs: number): Promise<void> {
    await this.none(waitMs);
    const left = [...this.leases].map((lease) => lease.release('ignored').catch(() => undefined));
    await Promise.all(left);
  }

  private none(waitMs: number): Promise<void> {
    if (this.leases.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.whenNone.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
