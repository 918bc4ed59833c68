import { argumentError, RateLimitArgumentError } from '../../../engine/errors/errors.js';
import { cliMessages } from '../../../engine/errors/messages/cli.js';
import type { CompiledLimit } from '../../../engine/limits/compiled-limit.js';
import type { CheckEntry, Counter } from '../../../engine/limits/counter.js';
import type { InstanceChannel } from '../../redis/instance-channel.js';
import { answerWith } from '../../stores/decide.js';
import type { Operation, OperationName } from '../../stores/operation.js';
import { regionKeys, regionsIn } from '../../stores/redis/keys.js';
import type { Check, CheckAnswer, Store, StoreDecision } from '../../stores/store.js';
import type { HomeServer } from '../feature.js';
import { Home, homeStoreOn } from './home.js';
import type { HomeRecord } from './home-record.js';
import { counterAtHome, isOfWorld } from './limit-regions.js';
import { withDeadline } from '../../redis/deadline.js';
import type { Connection } from '../../redis/connection.js';
import { asStoreError, pairsOf, serverOf } from '../../redis/errors.js';
import { horizonOf } from './terms.js';
import { WorldLayer } from './world-layer.js';

/** The record that a home keeps of the loss of its charges, in microseconds of its clock. `lua/features/regions.lua` writes it. */
interface HomeDoubt {
  readonly now: number;
  /** When it last lost charges; 0 if never. */
  readonly lost: number;
  /** When it became the home, after a restart or failover. */
  readonly since: number;
  /** True if all regions have called since then. */
  readonly isHeard: boolean;
}

/** A region that was silent for this long before the home was replaced is not waited for. */
const SILENT = 600_000_000;
/** How long to wait for the remaining regions before the next check, in milliseconds. */
const ASK_AGAIN_MS = 250;

/** Reads the record without a call from a region, which would count as one. Rejects with `RateLimitStoreError`. */
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
  // The next call detects that the server was replaced.
  if (of('history') !== Number.parseInt(id, 16)) return { now, lost, since: now, isHeard: false };
  const isHeard = regionsIn([...fields.keys()]).every(
    (region) => of(`heard:${region}`) === of('epoch') || of(`seen:${region}`) <= of('survived') - SILENT,
  );
  return { now, lost, since: of('since'), isHeard };
}

/** How many milliseconds the home grants no units of a limit, because it may have lost some of its grants; 0 if it grants units. */
function doubtMs({ algorithm, parameters }: CompiledLimit, { now, lost, since, isHeard }: HomeDoubt): number {
  const isOpen = (from: number) => from + horizonOf(algorithm, parameters, from) > now;
  if (!isHeard && isOpen(since)) return ASK_AGAIN_MS;
  return lost > 0 && isOpen(lost) ? Math.ceil((lost + horizonOf(algorithm, parameters, lost) - now) / 1000) : 0;
}

/**
 * Reads and changes limits of scope 'world' at their home, for a program that doesn't belong to a region. It makes no exchanges and calls
 * for no region, so that it takes no units and doesn't count as a running region.
 */
class HomeObserver extends WorldLayer {
  constructor(
    inner: Store,
    home: Home,
    channel: InstanceChannel,
    private readonly doubt: () => Promise<HomeDoubt>,
  ) {
    super(inner, home, channel);
  }

  override decide(check: Check, answer: CheckAnswer): void {
    if (check.entries.some(isOfWorld)) answerWith(this.look(check), answer);
    else this.inner.decide(check, answer);
  }

  protected override operateInRegion<N extends OperationName>(
    _operation: Operation<N>,
    ofWorld: readonly Counter[],
  ): Promise<never> {
    return Promise.reject(notBesideApp(ofWorld[0]!));
  }

  /** Reads the units left at the home. Units that regions hold are charged there. */
  private async look({ entries, ...check }: Check): Promise<StoreDecision[]> {
    const world = entries.find(isOfWorld)!;
    if (check.peek !== true) throw notBesideApp(world);
    const atHome = entries.filter(isOfWorld).map((entry) => ({ ...entry, ...counterAtHome(entry) }));
    const elsewhere = entries.filter((entry) => !isOfWorld(entry));
    const [doubt, ofWorld, others] = await Promise.all([
      this.doubt(),
      this.home.layer.decided({ ...check, entries: atHome }),
      elsewhere.length === 0 ? [] : this.inner.decided({ ...check, entries: elsewhere }),
    ]);
    const [nextOfWorld, nextOther] = [ofWorld.values(), others.values()];
    return entries.map((entry) =>
      isOfWorld(entry) ? inDoubt(nextOfWorld.next().value!, entry, doubt) : nextOther.next().value!,
    );
  }
}

/** The decision of the home: it rejects while it may have lost some of its grants. */
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

function notBesideApp({ limit }: Counter): RateLimitArgumentError {
  return argumentError('SLUICE_UNSUPPORTED_CALL', cliMessages.notBesideApp(limit.name));
}

/** Only regions need a record of the home. */
const nobody = () => Promise.reject(new Error('nobody calls the home from here'));
const NO_RECORD = { read: nobody, note: nobody } as unknown as HomeRecord;

/** Reads limits of scope 'world' at their home. */
export function homeObserver(place: HomeServer) {
  const { connection, prefix, timeoutMs } = place;
  const { regions } = regionKeys(prefix);
  const { store, channel } = homeStoreOn(place);
  // Each failed call is reported by its error.
  const home = new Home(store, regions, '', NO_RECORD, timeoutMs, () => undefined);
  const doubt = () => readDoubt(connection, regions, timeoutMs);
  return (inner: Store) => new HomeObserver(inner, home, channel, doubt);
}
