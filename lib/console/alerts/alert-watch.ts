import { setMaxListeners } from 'node:events';
import { consoleLogger } from '../../engine/errors/logger.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { withDeadline } from '../../storage/redis/deadline.js';
import type { Incident, Incidents } from '../api.js';
import type { Command, ConsoleRedis } from '../telemetry/console-redis.js';
import { begun, type ConsoleAlert, ended, type ReadAlerts } from './alert-options.js';

/** How often an instance checks for incidents. */
const LOOK_MS = 5000;
/** How long one instance checks for all of them: longer than all of its requests at a time may take. */
const TURN_MS = 15_000;
/** How long `close` waits for pending requests before it aborts them, and then for pending writes. */
const GRACE_MS = 500;
const REST_MS = 300;
/** An incident that was not found for this long is over. */
const OVER_MS = 60_000;
/** Maximum number of incidents to remember: more than there can be at a time. */
const MOST = 100;
/** How long reported incidents are kept on Redis. */
const KEPT_SECONDS = 7 * 86_400;

interface Reported {
  readonly alert: ConsoleAlert;
  lastAt: number;
  /** True if it was stored for the other instances. */
  isStored: boolean;
}

/**
 * Checks for incidents while nobody views the console, and reports when they begin and end. One instance does this for all. While Redis is
 * unavailable, each instance reports the incidents that it detects.
 */
export class AlertWatch {
  private readonly reported = new Map<string, Reported>();
  private timer: NodeJS.Timeout | undefined;
  private looking: Promise<void> | undefined;
  private readonly closing = new AbortController();
  /** True if this instance was responsible at the last check. */
  private isFirst = false;
  private warned: string | undefined;
  private isClosed = false;

  constructor(
    private readonly options: ReadAlerts,
    private readonly find: () => Promise<Incidents>,
    private readonly redis: ConsoleRedis | undefined,
    private readonly self: string,
    private readonly prefix: string,
    private readonly deliver: (alert: ConsoleAlert, options: ReadAlerts, closing: AbortSignal) => Promise<void>,
  ) {
    // Each alert being sent adds a listener; Node warns at more than ten.
    setMaxListeners(0, this.closing.signal);
  }

  start(): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      this.looking = this.look().finally(() => this.start());
    }, LOOK_MS).unref();
  }

  /** Lets another instance take over after at most a second, including alerts that were not sent by then. Never rejects. */
  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await waitAtMost(this.looking, GRACE_MS);
    this.closing.abort(new Error('the app is closing'));
    await waitAtMost(this.looking?.then(() => this.endTurn()) ?? this.endTurn(), REST_MS);
  }

  /** Checks once. Never rejects. */
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
    const { prefix, options, reported } = this;
    const isNew = (incident: Incident) => {
      const known = reported.get(incident.id);
      if (known !== undefined) known.lastAt = at;
      return known === undefined;
    };
    const began = incidents
      .filter(isNew)
      .slice(0, MOST - reported.size)
      .map((incident) => begun(incident, at, prefix, options.link));
    const over = [...reported.values()].filter(({ lastAt }) => at - lastAt >= OVER_MS);
    const isEmpty = began.length === 0 && over.length === 0;
    // Another instance may be responsible by now.
    if (isEmpty || this.isClosed || (isShared && !(await this.keepTurn()))) return;
    // Sent all at once, so that one deadline applies to them. This instance is responsible until then.
    const sent = await Promise.all([
      ...began.map((alert) => this.send(alert, () => this.remember({ alert, lastAt: at, isStored: isShared }))),
      ...over.map(({ alert, isStored }) => this.send(ended(alert, at), () => this.forget(alert, isStored))),
    ]);
    const failure = sent.find((reason) => reason !== undefined);
    if (failure === undefined) this.warned = undefined;
    else if (!this.closing.signal.aborted) this.warn(failure);
  }

  /** Sends an alert, and records that it was accepted. Resolves to the reason if it was not. */
  private async send(alert: ConsoleAlert, taken: () => Promise<void>): Promise<string | undefined> {
    try {
      await this.deliver(alert, this.options, this.closing.signal);
    } catch (error) {
      return reasonOf(error);
    }
    await taken();
    return undefined;
  }

  private async remember(reported: Reported): Promise<void> {
    const { alert, isStored } = reported;
    this.reported.set(alert.id, reported);
    if (!isStored) return;
    const { alerts } = this.redis!.keys;
    await this.write([
      ['hset', alerts, alert.id, JSON.stringify(alert)],
      ['expire', alerts, KEPT_SECONDS],
    ]);
  }

  private async forget({ id }: ConsoleAlert, isStored: boolean): Promise<void> {
    this.reported.delete(id);
    if (isStored) await this.write([['hdel', this.redis!.keys.alerts, id]]);
  }

  /** Alerts that can't be written are remembered only in this process. */
  private async write(commands: readonly Command[]): Promise<void> {
    await this.redis!.run(commands).catch(() => undefined);
  }

  /** Resolves to true if this instance is responsible. Rejects if Redis doesn't answer. Without Redis, there is only this instance. */
  private async takeTurn(): Promise<boolean | undefined> {
    const { redis, self } = this;
    if (redis === undefined) return undefined;
    const { alerting, alerts } = redis.keys;
    const [taken, holder, stored] = await redis.run([
      ['set', alerting, self, 'PX', TURN_MS, 'NX'],
      ['get', alerting],
      ['hgetall', alerts],
    ]);
    if (holder !== self) {
      this.isFirst = false;
      this.reported.clear();
      return false;
    }
    if (taken === null) await redis.run([['pexpire', alerting, TURN_MS]]);
    if (!this.isFirst || taken !== null) this.takeOver(stored as Record<string, string>);
    this.isFirst = true;
    return true;
  }

  /** Extends this instance's turn. Resolves to true if it is still responsible. */
  private async keepTurn(): Promise<boolean> {
    const { redis, self } = this;
    const { alerting } = redis!.keys;
    const [holder] = await redis!.run([['get', alerting]]);
    if (holder !== self) return false;
    await redis!.run([['pexpire', alerting, TURN_MS]]);
    return true;
  }

  private async endTurn(): Promise<void> {
    const { redis } = this;
    if (this.isFirst && redis !== undefined) await redis.run([['del', redis.keys.alerting]]).catch(() => undefined);
  }

  /** Continues with the alerts of other instances. Alerts that only this instance has sent are among them, or are kept. */
  private takeOver(stored: Readonly<Record<string, string>>): void {
    for (const [id, { isStored }] of this.reported) {
      // Another instance has reported the end.
      if (isStored && !Object.hasOwn(stored, id)) this.reported.delete(id);
    }
    for (const [id, text] of Object.entries(stored)) {
      const alert = JSON.parse(text) as ConsoleAlert;
      if (!this.reported.has(id)) this.reported.set(id, { alert, lastAt: alert.at, isStored: true });
    }
  }

  private warn(reason: string): void {
    if (this.warned === reason) return;
    this.warned = reason;
    consoleLogger.warn(consoleMessages.unreported(reason));
  }
}

/** Waits for a promise that never rejects, but at most this long. */
function waitAtMost(promise: Promise<void> | undefined, ms: number): Promise<void> {
  return withDeadline(promise ?? Promise.resolve(), ms).catch(() => undefined);
}

/** How long a webhook or a function may take. */
const TIMEOUT_MS = 5000;

/** Sends an alert. Rejects if it isn't accepted in time, or before the console closes. */
export async function deliver(
  alert: ConsoleAlert,
  { to, format, routingKey }: ReadAlerts,
  closing: AbortSignal,
): Promise<void> {
  closing.throwIfAborted();
  if (typeof to === 'function') {
    // A function that throws synchronously is handled like one that rejects.
    await inTime(async () => to(alert), closing);
    return;
  }
  const response = await fetch(to, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(alert, format, routingKey)),
    signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), closing]),
    // A redirect would lead to a URL that was not configured.
    redirect: 'error',
  });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`the webhook answered ${response.status}`);
}

/** Rejects if a call takes too long. Leaves no timer behind. */
async function inTime(call: () => Promise<unknown>, closing: AbortSignal): Promise<void> {
  const ends = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took longer than ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS).unref();
    closing.addEventListener('abort', () => reject(closing.reason as Error), { signal: ends.signal });
  });
  try {
    await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
    ends.abort();
  }
}

function bodyOf(alert: ConsoleAlert, format: ReadAlerts['format'], routingKey: string | undefined): object {
  if (format === 'json') return alert;
  return format === 'slack' ? ofSlack(alert) : ofPagerDuty(alert, routingKey);
}

function ofSlack({ state, severity, text, link }: ConsoleAlert): object {
  const mark = state === 'ended' ? ':white_check_mark:' : severity === 'critical' ? ':rotating_light:' : ':warning:';
  return { text: `${mark} ${escaped(text)}${link === undefined ? '' : ` <${escaped(link)}|Open the console>`}` };
}

/** Names of limits must not become links or mentions. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function ofPagerDuty(
  { state, id, prefix, severity, text, since, kind, limit, link }: ConsoleAlert,
  key?: string,
): object {
  const common = { routing_key: key, dedup_key: `nestjs-sluice ${prefix} ${id}` };
  if (state === 'ended') return { ...common, event_action: 'resolve' };
  return {
    ...common,
    event_action: 'trigger',
    payload: {
      summary: text.slice(0, 1024),
      source: `nestjs-sluice, prefix ${prefix}`,
      severity,
      timestamp: new Date(since).toISOString(),
      class: kind,
      ...(limit !== undefined && { component: limit }),
    },
    ...(link !== undefined && { links: [{ href: link, text: 'The console' }] }),
  };
}
