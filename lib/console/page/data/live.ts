import type { Figures, Incident, Overview, Tick, TopKeys } from '../../api.js';
import { get, RequestError, urlOf } from './client.js';
import { connection, skew, Store } from './store.js';
import { merged, totalsOf } from './series.js';

/** The last five minutes, and the other data that the app sends each second. */
export interface Live extends Figures {
  /** Active incidents; absent until the first second arrives. */
  readonly incidents?: readonly Incident[];
  /** The top keys of the watched limit. */
  readonly top?: TopKeys | undefined;
}

const LENGTH = 300;
/** The connection counts as lost after this silence. The server sends data each second. */
const SILENCE_MS = 8_000;
/** How long a hidden page keeps listening. */
const REST_MS = 60_000;
const RETRY_MS = [500, 1_000, 2_000, 4_000, 5_000];

export const live = new Store<Live | undefined>(undefined);

let source: EventSource | undefined;
let watched: string | undefined;
let retries = 0;
let timer = 0;
let paused = false;
let hidden = 0;

/** Starts listening. The data includes the top keys of the watched limit. */
export function listen(limit?: string): void {
  watched = limit;
  if (!paused) connect();
}

export function pause(): void {
  paused = true;
  close();
  connection.value = { ...connection.value, state: 'paused' };
}

export function resume(): void {
  paused = false;
  retries = 0;
  connect();
}

function close(): void {
  window.clearTimeout(timer);
  source?.close();
  source = undefined;
}

function connect(): void {
  close();
  const query = watched === undefined ? '' : `?limit=${encodeURIComponent(watched)}&top=1`;
  const opened = new EventSource(urlOf(`api/live${query}`));
  source = opened;
  expectWords();
  opened.addEventListener('tick', (event: MessageEvent<string>) => {
    expectWords();
    hear(JSON.parse(event.data) as Tick);
  });
  // Some responses end an event source permanently, so it is always recreated here.
  opened.addEventListener('error', () => lose());
}

/** A hidden page gives up its place among the viewers. */
function rest(): void {
  window.clearTimeout(hidden);
  if (document.hidden) {
    hidden = window.setTimeout(() => {
      if (paused || source === undefined) return;
      close();
      connection.value = { ...connection.value, state: 'connecting' };
    }, REST_MS);
  } else if (!paused && connection.value.state === 'connecting' && source === undefined) connect();
}

document.addEventListener('visibilitychange', rest);

/** Closes a connection that has been silent for too long. */
function expectWords(): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => lose(), SILENCE_MS);
}

function lose(answers = connection.value.answers === true): void {
  close();
  connection.value = { ...connection.value, state: 'lost', answers };
  const wait = RETRY_MS[Math.min(retries++, RETRY_MS.length - 1)]!;
  timer = window.setTimeout(() => void knock(), wait);
}

/** Finds out with an ordinary request why the event source was rejected, since an event source doesn't report it. */
async function knock(): Promise<void> {
  try {
    await get('api/session');
  } catch (error) {
    const status = error instanceof RequestError ? error.status : 0;
    if (status !== 401 && status !== 403) return lose(false);
    connection.value = { ...connection.value, state: 'denied' };
    timer = window.setTimeout(() => void knock(), RETRY_MS.at(-1));
    return;
  }
  connection.value = { ...connection.value, answers: true };
  if (!paused) connect();
}

function hear(tick: Tick): void {
  retries = 0;
  const { state, epoch } = connection.value;
  const { problem } = tick;
  // Reloads everything, because the series lacks the time in between, and the counts of others while Redis was down.
  if (state !== 'live' || live.value === undefined || problem !== connection.value.problem) void load();
  if (state !== 'live' || problem !== connection.value.problem) {
    connection.value = {
      state: 'live',
      epoch: state === 'live' || state === 'connecting' ? epoch : epoch + 1,
      ...(problem !== undefined && { problem }),
    };
  }
  skew.value = tick.at - Date.now();
  if (live.value === undefined) return;
  const series = merged(live.value.series, tick.series, tick.stepMs, LENGTH);
  const { top: lastTop, problem: _problem, ...last } = live.value;
  const top = tick.top ?? (lastTop?.limit === watched ? lastTop : undefined);
  live.value = { ...last, ...tick, series, totals: totals(series), top };
}

async function load(): Promise<void> {
  try {
    const { range: _range, ...overview } = await get<Overview>('api/overview?range=5m');
    const { incidents } = live.value ?? {};
    live.value = { ...overview, totals: totals(overview.series), ...(incidents && { incidents }) };
  } catch {
    // While there is no data, the next tick tries again.
  }
}

function totals(series: Overview['series']): Overview['totals'] {
  return Object.fromEntries(Object.entries(series.limits).map(([name, limit]) => [name, totalsOf(limit)]));
}
