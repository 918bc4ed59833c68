import { consoleLogger } from '../../engine/errors/logger.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import type { Incident, Incidents } from '../api.js';
import type { ConsoleRedis } from '../telemetry/console-redis.js';
import { begun, type ConsoleAlert, ended } from './alert.js';
import type { ReadAlerts } from './alert-options.js';

/** How often it is looked, and for how long one instance looks for all of them. */
const LOOK_MS = 5000;
const TURN_MS = 15_000;
/** An incident that was not found for this long is over. */
const OVER_MS = 60_000;
/** The most incidents that are remembered: more than there can be at a time. */
const MOST = 100;
/** How long what was reported is kept on Redis. */
const KEPT_SECONDS = 7 * 86_400;

/** An incident that was reported. */
interface Reported {
  readonly alert: ConsoleAlert;
  lastAt: number;
}

/**
 * Looks for incidents while nobody views the console, and reports their begin and end: one instance does so for all. While Redis does
 * not answer, each instance reports what it sees itself.
 */
export class AlertWatch {
  private readonly reported = new Map<string, Reported>();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private isClosed = false;
  /** Whether this instance looked for all the last time. */
  private isFirst = false;
  private warned: string | undefined;

  constructor(
    private readonly options: ReadAlerts,
    private readonly find: () => Promise<Incidents>,
    private readonly redis: ConsoleRedis | undefined,
    private readonly self: string,
    private readonly prefix: string,
    private readonly deliver: (alert: ConsoleAlert, options: ReadAlerts) => Promise<void>,
  ) {}

  start(): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.looking = this.look().finally(() => this.start());
    }, LOOK_MS).unref();
  }

  /** Waits for what is being reported, and lets another instance look. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.looking;
    const { redis } = this;
    if (this.isFirst && redis !== undefined) await redis.run([['del', redis.keys.alerting]]).catch(() => undefined);
  }

  /** Looks once. Never rejects. */
  async look(): Promise<void> {
    const isShared = await this.takeTurn().catch(() => undefined);
    if (isShared === false) return;
    try {
      const { at, incidents } = await this.find();
      await this.report(
        incidents.filter((each) => this.isWanted(each)),
        at,
        isShared !== undefined,
      );
    } catch (error) {
      this.warn(reasonOf(error));
    }
  }

  private isWanted(incident: Incident): boolean {
    const { kinds, refusedShare } = this.options;
    if (!kinds.includes(incident.kind)) return false;
    return incident.kind !== 'refused' || incident.share >= refusedShare || this.reported.has(incident.id);
  }

  private async report(incidents: readonly Incident[], at: number, isShared: boolean): Promise<void> {
    const { prefix, options } = this;
    for (const incident of incidents) {
      const known = this.reported.get(incident.id);
      if (known !== undefined) known.lastAt = at;
      else if (this.reported.size < MOST) {
        const alert = begun(incident, at, prefix, options.link);
        if (await this.send(alert)) await this.remember({ alert, lastAt: at }, isShared);
      }
    }
    for (const { alert, lastAt } of this.reported.values()) {
      if (at - lastAt < OVER_MS || !(await this.send(ended(alert, at)))) continue;
      this.reported.delete(alert.id);
      if (isShared) await this.write([['hdel', this.redis!.keys.alerts, alert.id]]);
    }
  }

  private async send(alert: ConsoleAlert): Promise<boolean> {
    try {
      await this.deliver(alert, this.options);
      this.warned = undefined;
      return true;
    } catch (error) {
      this.warn(reasonOf(error));
      return false;
    }
  }

  private async remember(reported: Reported, isShared: boolean): Promise<void> {
    const { alert } = reported;
    this.reported.set(alert.id, reported);
    if (!isShared) return;
    const { alerts } = this.redis!.keys;
    await this.write([
      ['hset', alerts, alert.id, JSON.stringify(alert)],
      ['expire', alerts, KEPT_SECONDS],
    ]);
  }

  /** What cannot be written is remembered in this process alone. */
  private async write(commands: Parameters<ConsoleRedis['run']>[0]): Promise<void> {
    await this.redis!.run(commands).catch(() => undefined);
  }

  /** Whether this instance looks for all; rejects if Redis does not say. In process there is only this one. */
  private async takeTurn(): Promise<boolean | undefined> {
    const { redis, self } = this;
    if (redis === undefined) return undefined;
    const { alerting, alerts } = redis.keys;
    const [, holder, stored] = await redis.run([
      ['set', alerting, self, 'PX', TURN_MS, 'NX'],
      ['get', alerting],
      ['hgetall', alerts],
    ]);
    if (holder !== self) {
      this.isFirst = false;
      this.reported.clear();
      return false;
    }
    await redis.run([['pexpire', alerting, TURN_MS]]);
    if (!this.isFirst) this.takeOver(stored as Record<string, string>);
    this.isFirst = true;
    return true;
  }

  /** Goes on with what another instance has reported; what this one reported alone is among it, or stays. */
  private takeOver(stored: Readonly<Record<string, string>>): void {
    for (const [id, text] of Object.entries(stored)) {
      const alert = JSON.parse(text) as ConsoleAlert;
      if (!this.reported.has(id)) this.reported.set(id, { alert, lastAt: alert.at });
    }
  }

  private warn(reason: string): void {
    if (this.warned === reason) return;
    this.warned = reason;
    consoleLogger.warn(consoleMessages.unreported(reason));
  }
}
