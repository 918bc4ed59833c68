import { cliMessages } from '../../engine/errors/messages/cli.js';
import { RateLimitStoreError } from '../../engine/errors/errors.js';
import type { OverrideStore, StoredChange } from '../../app/overrides/override-store.js';

/** Stands for the changes of a region's app while its home is not given: it knows none, and makes none. */
export class ElsewhereOverrideStore implements OverrideStore {
  /** @param isSilent whether reading it finds nothing, instead of failing: whoever reads it says what is unknown. */
  constructor(private readonly isSilent: boolean) {}

  subscribe(): void {}

  async watch(): Promise<void> {}

  async read(): Promise<void> {
    if (!this.isSilent) throw this.unknown();
  }

  write(): Promise<undefined> {
    return Promise.reject(this.unknown());
  }

  changes(): Promise<StoredChange[]> {
    return Promise.reject(this.unknown());
  }

  close(): void {}

  private unknown(): RateLimitStoreError {
    // Only the console is not silent, and it has no option '--module'.
    const message = this.isSilent ? cliMessages.changesAtHome() : cliMessages.changesWithoutHome();
    return Object.assign(new RateLimitStoreError(message), { isElsewhere: true });
  }
}
