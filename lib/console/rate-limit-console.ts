import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import type { RateLimitSettings } from '../app/config/settings.js';
import { RATE_LIMIT_REDIS, RATE_LIMIT_SETTINGS, RATE_LIMIT_STORE } from '../app/config/tokens.js';
import { consoleMessages } from '../engine/errors/messages/console.js';
import { configError } from '../engine/errors/errors.js';
import { consoleLogger } from '../engine/errors/logger.js';
import { missingModule } from '../nest/copies.js';
import { Explanations } from '../nest/explain/explanations.js';
import { LimiterService } from '../nest/limiter.service.js';
import { Overrides } from '../app/overrides/overrides.js';
import type { Connection } from '../storage/redis/connection.js';
import { HandlerClasses } from '../app/rules/handler-classes.js';
import { LimitRegistry } from '../app/rules/limit-registry.js';
import { RouteRulesRegistry } from '../app/rules/route-rules-registry.js';
import type { StoreLayer } from '../storage/stores/layers/store-layer.js';
import { DecisionStream } from '../storage/telemetry/decision-stream.js';
import { VERSION } from '../storage/telemetry/version.js';
import { AlertWatch, deliver } from './alerts/alert-watch.js';
import type { InstanceInfo, Session } from './api.js';
import { ChangeLog, ConsoleLog } from './changes/change-log.js';
import { KeyChanges } from './changes/key-changes.js';
import { ListChanges } from './changes/list-changes.js';
import { RateChanges } from './changes/rate-changes.js';
import { Undoing } from './changes/undoing.js';
import { CONSOLE_ROUTES, CONSOLE_SETTINGS, type ReadRoutes, type ReadSettings } from './console-options.js';
import { CONSOLE_LIMIT, LimitCatalog, LookupBudget, OWN_LIMIT } from './limit-catalog.js';
import { LiveFeed } from './http/live-feed.js';
import { ShownNames } from './shown-names.js';
import { ConsoleClock, ConsoleRedis } from './telemetry/console-redis.js';
import { publishedText } from './telemetry/published-limits.js';
import { Recorder } from './telemetry/recorder.js';
import { WatchedLimits } from './telemetry/watched-limits.js';
import { DEVIATIONS_PAGE, DeviationLists } from './views/deviations.js';
import { IncidentViews } from './views/incidents.js';
import { Demands } from './views/demands.js';
import { LimitParts } from './views/limit-parts.js';
import { Lookups } from './views/lookups.js';
import { Overviews } from './views/overviews.js';
import { RedisHealth } from './views/redis-health.js';
import { TopLists } from './views/top-lists.js';

const LOCATION = 'RateLimitConsoleModule';

/** The parts of the console. Starts and ends them. */
@Injectable()
export class RateLimitConsole
  implements OnModuleInit, OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly catalog: LimitCatalog;
  readonly overviews: Overviews;
  readonly incidents: IncidentViews;
  readonly live: LiveFeed;
  readonly top: TopLists;
  readonly demands: Demands;
  readonly lookups: Lookups;
  readonly parts: LimitParts;
  readonly deviations: DeviationLists;
  /** Charges pages of deviations for the keys that they read. */
  readonly deviationBudget: LookupBudget;
  /** The number of leading bits of an IPv6 address that identify a viewer. */
  readonly ipv6Prefix: number;
  /** Charges lookups to the clients that make them. */
  readonly lookupBudget: LookupBudget;
  readonly keys: KeyChanges;
  readonly rates: RateChanges;
  readonly lists: ListChanges;
  readonly changes: ChangeLog;
  readonly undoing: Undoing;
  readonly recorder: Recorder;
  readonly clock = new ConsoleClock();
  readonly redis: ConsoleRedis | undefined;
  private readonly limits: WatchedLimits;
  private readonly stream: DecisionStream;
  private readonly prefix: string;
  readonly alerts: AlertWatch | undefined;

  constructor(
    @Inject(CONSOLE_SETTINGS) readonly settings: ReadSettings,
    @Inject(CONSOLE_ROUTES) private readonly routes: ReadRoutes,
    @Optional() service?: LimiterService,
    @Optional() stream?: DecisionStream,
    @Optional() @Inject(RATE_LIMIT_SETTINGS) limiting?: RateLimitSettings,
    @Optional() @Inject(RATE_LIMIT_STORE) store?: StoreLayer,
    @Optional() @Inject(RATE_LIMIT_REDIS) client?: Connection,
    @Optional() registry?: LimitRegistry,
    @Optional() plans?: RouteRulesRegistry,
    @Optional() classes?: HandlerClasses,
    @Optional() overrides?: Overrides,
    @Optional() explanations?: Explanations,
  ) {
    if (service === undefined || stream === undefined || limiting === undefined) {
      throw missingModule(LOCATION, consoleMessages.noModule(LOCATION));
    }
    const { prefix, timeoutMs, ipv6Prefix } = limiting;
    const { isPlain, topKeys, observed } = settings;
    const { clock } = this;
    const now = () => clock.now();
    const names = new ShownNames(isPlain);
    const redis = client && new ConsoleRedis(client, prefix, timeoutMs);
    this.ipv6Prefix = ipv6Prefix;
    this.lookupBudget = new LookupBudget(service.for(CONSOLE_LIMIT), () => this.catalog.entries().length);
    this.deviationBudget = new LookupBudget(service.for(CONSOLE_LIMIT), () => DEVIATIONS_PAGE);
    this.stream = stream;
    this.prefix = prefix;
    this.redis = redis;
    this.catalog = new LimitCatalog(
      registry!,
      plans!,
      classes!,
      overrides!,
      observed?.limits.map(({ info }) => info),
    );
    this.limits = new WatchedLimits(this.catalog.labelOf, topKeys === 'always', now, this.catalog.isDeclared);
    this.recorder = new Recorder(
      this.limits,
      clock,
      redis,
      () => circuitOf(store!),
      (entry) => store!.lookAt(entry),
      timeoutMs,
      observed === undefined
        ? () => publishedText(this.catalog, registry!, limiting, VERSION, isPlain ? 'plain' : 'hashed')
        : undefined,
    );
    const health = redis && new RedisHealth(redis, this.recorder);
    const labels = () => this.catalog.infos().map(({ name }) => name);
    this.overviews = new Overviews(this.recorder, clock, redis, health, labels);
    this.top = new TopLists(this.limits, this.overviews.instances, clock, redis, isPlain, observed !== undefined);
    this.demands = new Demands(this.limits.demand, this.overviews.instances, clock);
    this.incidents = new IncidentViews(this.overviews, this.top, clock);
    const { alerts } = settings;
    this.alerts =
      alerts && new AlertWatch(alerts, () => this.incidents.now(), redis, this.recorder.self.id, prefix, deliver);
    this.live = new LiveFeed(
      () => this.incidents.tick(),
      (label) => this.top.of(label),
      now,
    );
    const log = new ConsoleLog(redis, names);
    this.lookups = new Lookups(this.catalog, explanations!, service, names, ipv6Prefix, now);
    this.parts = new LimitParts(this.catalog, this.top, store!, names, now);
    this.changes = new ChangeLog(service, log, names);
    this.undoing = new Undoing(service, overrides!, this.changes, now);
    const { noted } = this.limits;
    this.deviations = new DeviationLists(
      this.catalog,
      overrides!,
      service,
      this.lookups,
      names,
      noted,
      log,
      redis,
      now,
    );
    const identityOf = async (label: string, id: string) =>
      (await this.top.identityOf(label, id)) ?? (await this.deviations.identityOf(label, id));
    this.keys = new KeyChanges(this.catalog, service, overrides!, this.lookups, identityOf, log, now);
    const keyOf = (label: string, id: string) => this.deviations.keyOf(label, id);
    this.rates = new RateChanges(this.catalog, service, overrides!, names, keyOf, now);
    this.lists = new ListChanges(service, overrides!, names);
  }

  get session(): Session {
    const { settings, routes, redis, catalog } = this;
    return {
      version: VERSION,
      prefix: this.prefix,
      storage: redis === undefined ? 'memory' : 'redis',
      identities: settings.isPlain ? 'plain' : 'hashed',
      topKeys: settings.topKeys,
      actable: (routes.act ?? routes.write) !== undefined,
      writable: routes.write !== undefined,
      instance: this.recorder.self.id,
      limits: catalog.infos(),
      observedSince: settings.observed?.at,
      changesUnread: settings.changesUnread,
    };
  }

  /**
   * Called by Nest: starts counting. Throws `RateLimitConfigError` if another console already counts, or if a limit has the console's name.
   */
  onModuleInit(): void {
    if (this.stream.tap !== undefined)
      throw configError('SLUICE_DUPLICATE_MODULE', consoleMessages.secondConsole(LOCATION));
    if (this.catalog.entries().some(({ rule }) => rule.name === OWN_LIMIT)) {
      throw configError('SLUICE_DUPLICATE_LIMIT', consoleMessages.reservedName(LOCATION, OWN_LIMIT));
    }
    if (this.routes.isOpen) consoleLogger.warn(consoleMessages.unguarded(this.routes.path));
    if (this.settings.observed === undefined) this.stream.tap = this.limits.tally;
    this.recorder.start();
    this.alerts?.start();
  }

  /** Called by Nest. Responses that never end would keep the server open. */
  onModuleDestroy(): void {
    this.live.close();
  }

  /** Called by Nest while the connection is still open. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.alerts?.close();
    await this.recorder.leave();
  }

  /** Called by Nest: stores the counts of the last requests. */
  async onApplicationShutdown(): Promise<void> {
    await this.recorder.close();
    if (this.stream.tap === this.limits.tally) this.stream.tap = undefined;
  }
}

function circuitOf({ isBroken }: StoreLayer): InstanceInfo['circuit'] {
  if (isBroken === undefined) return 'none';
  return isBroken ? 'open' : 'closed';
}
