import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { type Decision, Limiter, LimiterService } from 'nestjs-sluice';

/** Sends one mail every 2 seconds, as a mail provider might ask for; 4 may wait. */
@Injectable()
export class MailQueue implements OnModuleDestroy {
  private readonly logger = new Logger(MailQueue.name);
  private readonly outgoing: Limiter;
  private readonly waiting = new Set<NodeJS.Timeout>();

  constructor(limits: LimiterService) {
    this.outgoing = limits.for({ name: 'outgoing-mail', algo: 'leaky-bucket', rate: 1, interval: '2s', queue: 4 });
  }

  /** Takes a place in the queue and sends the mail when its turn has come. The decision says whether there was a place. */
  async send(to: string): Promise<Decision> {
    const decision = await this.outgoing.consume('global');
    if (decision.allowed) {
      const timer = setTimeout(() => {
        this.waiting.delete(timer);
        this.logger.log(`A mail leaves for ${to}`);
      }, decision.delayMs);
      this.waiting.add(timer);
    }
    return decision;
  }

  /** A real queue would keep them. */
  onModuleDestroy(): void {
    for (const timer of this.waiting) clearTimeout(timer);
  }
}
