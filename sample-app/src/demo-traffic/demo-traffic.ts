import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { InjectLimiter, Limiter } from 'nestjs-sluice';
import { Settings } from '../settings/settings.js';

const TICK_MS = 250;
/** The traffic swells and ebbs once in so long. */
const WAVE_MS = 45_000;
const VISITORS = 24;

/**
 * Visitors that are made up, so that the console shows something. They ask the app's limits in code, each with an identity of
 * its own, so nothing is taken from whoever tries the routes. `DEMO_TRAFFIC=off` leaves them out.
 */
@Injectable()
export class DemoTraffic implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(DemoTraffic.name);
  private timer: NodeJS.Timeout | undefined;
  private visits: Promise<void> | undefined;

  constructor(
    private readonly settings: Settings,
    @InjectLimiter('feed') private readonly feed: Limiter,
    @InjectLimiter('search') private readonly search: Limiter,
    @InjectLimiter('login') private readonly logins: Limiter,
  ) {}

  onApplicationBootstrap(): void {
    if (!this.settings.demoTraffic) return;
    this.timer = setInterval(() => {
      // While Redis is slow they wait, like everyone.
      this.visits ??= this.visit()
        .catch((error: unknown) => this.logger.warn(error))
        .finally(() => (this.visits = undefined));
    }, TICK_MS);
  }

  async onModuleDestroy(): Promise<void> {
    clearInterval(this.timer);
    await this.visits;
  }

  private async visit(): Promise<void> {
    const tide = 1 + Math.sin((Date.now() / WAVE_MS) * 2 * Math.PI);
    const asked = Array.from({ length: Math.round(4 * tide) }, () => this.feed.consume(visitor()));
    if (Math.random() < 0.2) asked.push(this.search.consume(visitor()));
    // Somebody guesses passwords, and is blocked again and again.
    if (Math.random() < 0.05) asked.push(this.logins.consume('ip:203.0.113.66'));
    await Promise.all(asked);
  }
}

/** An address of those that are kept for examples; the first of them come most often. */
function visitor(): string {
  return `ip:203.0.113.${1 + Math.floor(VISITORS * Math.random() ** 3)}`;
}
