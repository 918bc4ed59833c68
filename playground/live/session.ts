import { type Answer, isRefusal, send } from './answer.js';
import { Flow } from './flow.js';
import type { Units } from './refill.js';
import { nameOf, needsUser, type Route, type User } from './route.js';

/** What is known of a limit: what the last answer told of it. */
export interface Reading extends Units {
  readonly limit: string;
  /** It counts users, or was last told by a route that asks for one. */
  readonly ofUser: boolean;
}

/** What a route has answered. */
export interface RouteRecord {
  readonly sent: number;
  readonly allowed: number;
  readonly refused: number;
  /** Other answers, such as 401. */
  readonly other: number;
  readonly limits: readonly string[];
  /** The last refusal that told a wait. */
  readonly refusal: Answer | undefined;
}

/** The answers of one second. */
export interface Second {
  readonly at: number;
  allowed: number;
  refused: number;
}

/** Their units come back one by one. */
const GRADUAL: ReadonlySet<string> = new Set(['gcra', 'token-bucket', 'leaky-bucket']);

/** So many answers are kept for the log, and so many seconds for the chart. */
const MOST_ANSWERS = 200;
export const SECONDS = 60;
/** So many requests of a flow wait for their answers at most. */
const MOST_WAITING = 40;

const NOTHING: RouteRecord = { sent: 0, allowed: 0, refused: 0, other: 0, limits: [], refusal: undefined };

/** All that was sent since the page was opened, and what came back. */
export class Session {
  /** The newest first. */
  answers: readonly Answer[] = [];
  readonly readings = new Map<string, Reading>();
  readonly seconds: Second[] = [];
  private readonly records = new Map<string, RouteRecord>();
  private readonly flows = new Map<string, Flow>();
  private readonly listeners = new Set<() => void>();
  private waiting = 0;
  private frame: number | undefined;
  private user: User;

  constructor(user: User) {
    this.user = user;
  }

  recordOf(route: Route): RouteRecord {
    return this.records.get(nameOf(route)) ?? NOTHING;
  }

  /** Sends requests from now on as another user, of whom nothing is known yet. */
  become(user: User): void {
    this.user = user;
    for (const [limit, { ofUser }] of this.readings) if (ofUser) this.readings.delete(limit);
    this.tell();
  }

  /** Sends so many requests at once. */
  async burst(route: Route, count: number): Promise<Answer[]> {
    return Promise.all(Array.from({ length: count }, () => this.send(route)));
  }

  /** Requests of a route a second, from now on; 0 ends them. */
  flow(route: Route, perSecond: number): void {
    const name = nameOf(route);
    this.flows.get(name)?.end();
    this.flows.delete(name);
    if (perSecond > 0) {
      const next = () => {
        if (this.waiting < MOST_WAITING) void this.send(route);
      };
      this.flows.set(name, new Flow(perSecond, next));
    }
    this.tell();
  }

  /** How many requests of a route are sent a second. */
  flowOf(route: Route): number {
    return this.flows.get(nameOf(route))?.perSecond ?? 0;
  }

  get isFlowing(): boolean {
    return this.flows.size > 0;
  }

  endFlows(): void {
    for (const flow of this.flows.values()) flow.end();
    this.flows.clear();
    this.tell();
  }

  clearLog(): void {
    this.answers = [];
    this.tell();
  }

  /** Calls back when something has changed, once a frame at most. Returns what ends that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private async send(route: Route): Promise<Answer> {
    const { user } = this;
    this.waiting++;
    const answer = await send(route, user);
    this.waiting--;
    this.add(answer, user === this.user);
    if (answer.status === 0) this.endFlows();
    return answer;
  }

  private add(answer: Answer, isOfThisUser: boolean): void {
    const { route, told, status, at, refusedBy } = answer;
    this.answers = [answer, ...this.answers].slice(0, MOST_ANSWERS);
    const refused = isRefusal(answer);
    const allowed = status >= 200 && status < 400;
    const before = this.recordOf(route);
    const limits = told.map(({ limit }) => limit);
    this.records.set(nameOf(route), {
      sent: before.sent + 1,
      allowed: before.allowed + (allowed ? 1 : 0),
      refused: before.refused + (refused ? 1 : 0),
      other: before.other + (allowed || refused ? 0 : 1),
      limits: limits.length > 0 ? limits : before.limits,
      refusal: refused && answer.retryAt !== undefined ? answer : before.refusal,
    });
    const ofUser = needsUser(route);
    if (isOfThisUser || !ofUser) {
      for (const { limit, quota, left, wait, window } of told) {
        const refused = refusedBy.includes(limit);
        const refillMs = GRADUAL.has(route.algo) && window !== undefined ? window * 1000 : undefined;
        const until = at + wait * 1000;
        this.readings.set(limit, { limit, quota, left, at, refillMs, until, refused, ofUser });
      }
    }
    this.count(at, refused);
    this.tell();
  }

  private count(at: number, refused: boolean): void {
    const second = Math.floor(at / 1000);
    let last = this.seconds.at(-1);
    if (last === undefined || last.at < second) {
      last = { at: second, allowed: 0, refused: 0 };
      this.seconds.push(last);
      if (this.seconds.length > SECONDS + 1) this.seconds.shift();
    }
    if (refused) last.refused++;
    else last.allowed++;
  }

  private tell(): void {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      for (const listener of this.listeners) listener();
    });
  }
}
