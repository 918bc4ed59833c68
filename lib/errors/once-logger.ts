import type { Logger } from '@nestjs/common';

/** So many texts are logged. Those that name what is made anew for each request would have no end. */
const MOST_TEXTS = 1000;

/** Logs each text once. */
export class OnceLogger {
  private readonly told = new Set<string>();

  constructor(private readonly logger: Logger) {}

  warn(text: string): void {
    if (this.isNew(text)) this.logger.warn(text);
  }

  /** `reason` is what else the line says, such as a stack. */
  error(text: string, reason?: unknown): void {
    if (this.isNew(text)) this.logger.error(text, ...(reason === undefined ? [] : [reason]));
  }

  private isNew(text: string): boolean {
    if (this.told.size >= MOST_TEXTS || this.told.has(text)) return false;
    this.told.add(text);
    return true;
  }
}
