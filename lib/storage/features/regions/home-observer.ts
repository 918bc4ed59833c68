import { RateLimitArgumentError } from '../../../engine/errors/errors.js';
import { cliMessages } from '../../../engine/errors/messages/cli.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import type { InstanceChannel } from '../../redis/instance-channel.js';
import { answerWith, decided } from '../../stores/decide.js';
import { StoreLayer } from '../../stores/layers/store-layer.js';
import { measuredName, type Operation, type OperationAnswer, type OperationName } from '../../stores/operation.js';
import { regionKeys, regionsIn } from '../../stores/redis/keys.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../../stores/store.js';
import type { HomeServer } from '../home-server.js';
import { AT_HOME, ChangesAtHome } from './changes-at-home.js';
import { Home } from './home.js';
import type { HomeRecord } from './home-record.js';
import { HOLDINGS } from './holdings.js';
import { homeStoreOn } from './home-store.js';
import { counterAtHome, isOfWorld, limitRegionsOf } from './limit-regions.js';
import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { pairsOf } from '../../redis/reply-error.js';
import { asStoreError, serverOf } from '../../redis/store-error.js';
import { horizonOf } from './terms.js';

/** What a home knows of its own charges, in microseconds of its clock. `lua/features/regions.lua` keeps it. */
interface HomeDoubt {
  readonly now: number;
  /** When it lost some last; 0 if never. */
  readonly lost: number;
  /** Since when it is the home, after a restart or failover. */
  readonly since: number;
  /** Whether all regions have called since. */
  readonly isHeard: boolean;
}

/** A region that was silent for this long before the home was replaced is not waited for. */
const SILENT = 600_000_000;
/** How soon a home that has not heard of all regions may have, in milliseconds. */
const ASK_AGAIN_MS = 250;

/** Reads it without a call of a region, which would count. Rejects with `RateLimitStoreError`. */
async function readDoubt(client: Connection, hash: string, timeoutMs: number): Promise<HomeDoubt> {
  const commands = [['time'], ['info', 'replication'], ['hgetall', hash]];
  let replies: unknown[];
  try {
    const answers = (await withDeadline(client.pipeline(commands).exec(), timeoutMs)) ?? [];
    const failure = answers.find(([error]) => error !== null);
    if (failure !== undefined) throw failure[0]!;
    replies = answers.map(([, reply]) => reply);
  } catch (error) {
    throw asStoreError(error, serverOf(client));
  }
  const [time, info, stored] = replies as [[string, string], string, unknown];
  const now = Number(time[0]) * 1e6 + Number(time[1]);
  const fields = new Map(pairsOf(stored));
  const of = (name: string) => Number(fields.get(name) ?? 0);
  const lost = Math.min(of('lost'), now);
  if (fields.size === 0) return { now, lost, since: now, isHeard: true };
  const [, id = ''] = /master_replid:([\da-f]{12})/.exec(info) ?? [];
  // The next call finds that the server is another one.
  if (of('history') !== Number.parseInt(id, 16)) return { now, lost, since: now, isHeard: false };
  const isHeard = regionsIn([...fields.keys()]).every(
    (region) => of(`heard:${region}`) === of('epoch') || of(`seen:${region}`) <= of('survived') - SILENT,
  );
  return { now, lost, since: of('since'), isHeard };
}

/** For how long, in milliseconds, the home grants nothing of a limit, since it may not know what it granted; 0 if it does. */
function doubtMs({ algorithm, parameters }: CompiledLimit, { now, lost, since, isHeard }: HomeDoubt): number {
  const isOpen = (from: number) => from + horizonOf(algorithm, parameters, from) > now;
  if (!isHeard && isOpen(since)) return ASK_AGAIN_MS;
  return lost > 0 && isOpen(lost) ? Math.ceil((lost + horizonOf(algorithm, parameters, lost) - now) / 1000) : 0;
}

/**
 * Reads limits of scope 'world' at their home, and changes what is kept there, for a program that is no instance of any region. It makes
 * no exchanges and calls for no region, so that it neither takes units nor counts as one that lives.
 */
class HomeObserver extends StoreLayer {
  private readonly changes: ChangesAtHome;

  constructor(
    inner: Store,
    private readonly home: Home,
    private readonly channel: InstanceChannel,
    private readonly doubt: () => Promise<HomeDoubt>,
  ) {
    super(inner);
    this.changes = new ChangesAtHome(home, channel);
  }

  override async open(): Promise<void> {
    await Promise.all([super.open(), this.home.open()]);
  }

  override async close(): Promise<void> {
    this.channel.close();
    await super.close();
    await this.home.store.close();
  }

  override decideOne(limit: CompiledLimit, identity: string, cost: number): StoreDecision | undefined {
    return limitRegionsOf(limit) === undefined ? this.inner.decideOne?.(limit, identity, cost) : undefined;
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (check.entries.some(isOfWorld)) answerWith(this.look(check), answer);
    else this.below.decide(check, answer);
  }

  override async operate<N extends OperationName>(operation: Operation<N>): Promise<OperationAnswer<N>> {
    const all = operation.counters as readonly Counter[];
    const ofWorld = all.filter(isOfWorld);
    if (ofWorld.length === 0) return super.operate(operation);
    if (measuredName(operation as Operation) === HOLDINGS) return this.home.holdings(counterAtHome(ofWorld[0]!));
    const atHome = AT_HOME[operation.name];
    if (atHome === undefined)
      throw new RateLimitArgumentError(cliMessages.notBesideApp(ofWorld[0]!.limit.name), {
        code: 'SLUICE_UNSUPPORTED_CALL',
      });
    const others = all.filter((counter) => !isOfWorld(counter));
    if (others.length > 0) await super.operate({ ...operation, counters: others });
    return this.changes.make(operation, ofWorld, atHome.ahead);
  }

  /** What is left at the home. Units that regions hold are charged there. */
  private async look({ entries, ...check }: Check): Promise<StoreDecision[]> {
    const world = entries.find(isOfWorld)!;
    if (check.peek !== true)
      throw new RateLimitArgumentError(cliMessages.notBesideApp(world.limit.name), { code: 'SLUICE_UNSUPPORTED_CALL' });
    const ask = (store: Store, some: readonly CheckEntry[]) =>
      some.length === 0 ? [] : decided(store, { ...check, entries: some });
    const [doubt, ofWorld, others] = await Promise.all([
      this.doubt(),
      ask(
        this.home.store,
        entries.filter(isOfWorld).map((entry) => ({ ...entry, ...counterAtHome(entry) })),
      ),
      ask(
        this.inner,
        entries.filter((entry) => !isOfWorld(entry)),
      ),
    ]);
    const [nextOfWorld, nextOther] = [ofWorld.values(), others.values()];
    return entries.map((entry) =>
      isOfWorld(entry) ? inDoubt(nextOfWorld.next().value!, entry, doubt) : nextOther.next().value!,
    );
  }
}

/** What the home grants now: nothing, while it may not know what it granted. */
function inDoubt(decision: StoreDecision, entry: CheckEntry, doubt: HomeDoubt): StoreDecision {
  const waitMs = doubtMs(counterAtHome(entry).limit, doubt);
  if (waitMs === 0) return decision;
  const { allowed, retryAfterMs } = decision;
  return {
    ...decision,
    remaining: 0,
    allowed: allowed && entry.cost === 0,
    retryAfterMs: Math.max(retryAfterMs, entry.cost === 0 ? 0 : waitMs),
  };
}

/** It is asked only for what regions do. */
const NO_RECORD = {
  read: () => Promise.reject(new Error('nobody calls the home from here')),
  note: () => Promise.reject(new Error('nobody calls the home from here')),
} as unknown as HomeRecord;

/** Reads limits of scope 'world' at their home. */
export function homeObserver(place: HomeServer) {
  const { connection, prefix, timeoutMs } = place;
  const { regions } = regionKeys(prefix);
  const { store, channel } = homeStoreOn(place);
  // Each call fails by itself.
  const home = new Home(store, regions, '', NO_RECORD, timeoutMs, () => undefined);
  const doubt = () => readDoubt(connection, regions, timeoutMs);
  return (inner: Store) => new HomeObserver(inner, home, channel, doubt);
}
