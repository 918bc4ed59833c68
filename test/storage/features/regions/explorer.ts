import {
  type Caller,
  emptyHome,
  type HomeData,
  type Known,
  type Pool,
  Protocol,
  type Reply,
  type Terms,
  type Times,
  unknownHome,
  used,
  type Wish,
} from './protocol-model.js';

/** How far the exploration goes. */
export interface Bounds {
  readonly regions: number;
  /** The most ticks. */
  readonly ticks: number;
  /** The most exchanges that a region begins, and the calls by which the first one only says that it is there. */
  readonly asks: number;
  readonly hellos?: number;
  /** How often a call may be sent again, or arrive twice. */
  readonly repeats?: number;
  /** How often a use is given back. */
  readonly refunds?: number;
  /** How often a server is replaced by one with the newest data, with those of any earlier moment, or with none. */
  readonly homeFailures?: number;
  readonly regionFailures?: number;
  /** The home is on the server of the first region, which fails with it. */
  readonly isShared?: boolean;
  /** No server loses all that it knew. */
  readonly keepsSome?: boolean;
  /** The instances of a region end with its server. */
  readonly endsInstances?: boolean;
  /** The home has been restarted, and no region knows yet. */
  readonly isRestarted?: boolean;
  /** The first region has not called before. */
  readonly isNew?: boolean;
  /** How many more regions there are, which only call: at first, and once the home has been replaced. */
  readonly others?: number;
  /** By how much the home's clock is set back, once. */
  readonly setBack?: number;
  /** The counter is reset at home once. */
  readonly isReset?: boolean;
  /** Each region hears of the reset, at some time. */
  readonly hearsReset?: boolean;
  /** Replies are noted and deposited in one step. */
  readonly depositsAtOnce?: boolean;
  /** Stops when it has seen so many states; none is a mistake of the spec. */
  readonly most?: number;
}

type Message =
  | {
      readonly to: 'home';
      readonly region: number;
      readonly caller: Caller;
      readonly wish?: Wish;
      /** The region has heard of a reset since. */
      wasReset?: true;
    }
  | {
      readonly to: 'region';
      readonly region: number;
      readonly reply: Reply;
      readonly wish: Wish;
      readonly shift: number;
      readonly isNoted?: true;
      wasReset?: true;
    }
  | { readonly to: 'region'; readonly region: number; readonly reply: Known; readonly shift: number };

interface Region {
  history: number;
  pool?: Pool;
  known: Known;
  memory: Known;
  /** By how much the instances take the home's clock to differ from theirs. */
  shift: number;
  asks: number;
  hellos: number;
  /** It has heard of the reset. */
  hasHeard?: true;
  /** What another server takes over with. */
  copy?: { pool?: Pool; known: Known };
}

interface World {
  tick: number;
  shift: number;
  server: number;
  home: HomeData;
  copy?: HomeData;
  regions: Region[];
  net: Message[];
  /** When units were used that count. */
  uses: number[];
  resetAt: number;
  repeats: number;
  refunds: number;
  homeFailures: number;
  regionFailures: number;
  isSetBack: boolean;
  isReset: boolean;
  /** What became of units by the last step: those that are neither held nor on their way. */
  granted: number;
  used: number;
  returned: number;
  givenUp: Record<string, number>;
  /** Units granted in an open exchange, and whether its returns arrived. */
  open: Record<string, { units: number; isMade: boolean }>;
}

export interface Found {
  readonly states: number;
  /** What is wrong, and the steps that lead there. */
  readonly problem: string | undefined;
  readonly steps?: readonly string[];
  /** Why units did not come back, each with an example of how many. */
  readonly reasons: ReadonlySet<string>;
}

/** Times that a check compares: well above the parts of an interval. */
const START = 24;

/** Visits every state that can be reached within bounds, the nearest first. */
export class Explorer {
  private readonly protocol: Protocol;
  private readonly seen = new Map<string, readonly [from: string, step: string]>();
  private readonly reasons = new Set<string>();

  constructor(
    private readonly terms: Terms,
    private readonly bounds: Bounds,
    /** Whether it looks at each state whether everything comes back from there. */
    private readonly recovers = false,
  ) {
    this.protocol = new Protocol(terms);
  }

  explore(): Found {
    let level = [JSON.stringify(this.first())];
    this.seen.set(level[0]!, ['', '']);
    while (level.length > 0) {
      const next: string[] = [];
      for (const from of level) {
        const before = JSON.parse(from) as World;
        for (const [step, change] of this.steps(before)) {
          const world = JSON.parse(from) as World;
          change(world);
          const missing = this.missing(before, world);
          this.simplify(world);
          const key = JSON.stringify(world);
          if (this.seen.has(key)) continue;
          this.seen.set(key, [from, step]);
          const problem = missing ?? this.problem(world) ?? (this.recovers ? this.unrecovered(world) : undefined);
          if (problem !== undefined) return this.found(problem, key);
          next.push(key);
        }
      }
      if (this.seen.size > (this.bounds.most ?? 1_000_000)) return this.found('too many states', '');
      level = next;
    }
    return this.found();
  }

  private found(problem?: string, last = ''): Found {
    const steps: string[] = [];
    for (let at = last; at !== '';) {
      const [from, step] = this.seen.get(at)!;
      if (step !== '') steps.unshift(step);
      at = from;
    }
    return { states: this.seen.size, problem, steps, reasons: this.reasons };
  }

  private first(): World {
    const { regions, repeats = 0, refunds = 0, homeFailures = 0, regionFailures = 0 } = this.bounds;
    const world: World = {
      tick: START,
      shift: 0,
      server: 1,
      home: emptyHome(),
      regions: Array.from({ length: regions }, (_, index) => newRegion(index)),
      net: [],
      uses: [],
      resetAt: 0,
      repeats,
      refunds,
      homeFailures,
      regionFailures,
      isSetBack: false,
      isReset: false,
      granted: 0,
      used: 0,
      returned: 0,
      givenUp: {},
      open: {},
    };
    // An app says hello before its first check.
    const { isNew = false, isRestarted = false } = this.bounds;
    for (const index of world.regions.keys()) {
      if (!isNew || index > 0) for (let i = 0; i < 2; i++) this.helloNow(world, index);
    }
    this.callOfOthers(world);
    if (isRestarted) world.server++;
    return world;
  }

  // The steps that can be taken next.

  private *steps(world: World): Iterable<[string, (world: World) => void]> {
    const { bounds } = this;
    if (world.tick < START + bounds.ticks) yield ['a tick passes', (to) => this.pass(to)];
    for (const [index, region] of world.regions.entries()) yield* this.stepsOf(world, index, region);
    for (const [index, message] of world.net.entries()) {
      const name = `${nameOf(message.region)}: ${this.nameOfStep(message)}`;
      yield [name, (to) => this.deliver(to, to.net.splice(index, 1)[0]!)];
      if (world.repeats > 0 && message.to === 'home') {
        yield [
          `${name}, twice`,
          (to) => {
            to.repeats--;
            this.deliver(to, to.net[index]!);
          },
        ];
      }
    }
    yield* this.failures(world);
    if (bounds.setBack !== undefined && !world.isSetBack) {
      yield [
        "the home's clock is set back",
        (to) => {
          to.isSetBack = true;
          to.shift -= bounds.setBack!;
        },
      ];
    }
    if (bounds.isReset === true && !world.isReset) yield ['the counter is reset', (to) => this.reset(to)];
  }

  private *stepsOf(world: World, index: number, region: Region): Iterable<[string, (world: World) => void]> {
    const name = nameOf(index);
    const { bounds, terms } = this;
    for (const shift of new Set([region.shift, ...(world.isSetBack ? [0] : [])])) {
      const times = this.timesOf(world, shift);
      if (region.pool && this.protocol.usable(this.protocol.poolOf(region.pool, region.history), times) > 0) {
        yield [`${name} uses a unit`, (to) => this.use(to, index, this.timesOf(to, shift))];
      }
      const waits = [0, 1, terms.quota].slice(0, terms.quota === 1 ? 2 : 3);
      if (region.asks < bounds.asks) {
        for (const waiting of waits) {
          const pool = this.protocol.poolOf(region.pool, region.history);
          if (!pool.isOpen && this.protocol.isDue(pool, times, waiting)) {
            yield [
              `${name} asks for ${waiting}`,
              (to) => {
                to.regions[index]!.asks++;
                this.ask(to, index, this.timesOf(to, shift), waiting);
              },
            ];
          }
        }
      }
      if (world.repeats > 0 && region.pool?.history === region.history && region.pool.isOpen) {
        yield [
          `${name} asks again`,
          (to) => {
            to.repeats--;
            this.ask(to, index, this.timesOf(to, shift), 0);
          },
        ];
      }
      if (world.refunds > 0 && world.uses.length > 0) {
        yield [`${name} gives back a use`, (to) => this.refund(to, index, this.timesOf(to, shift))];
      }
    }
    if (bounds.hearsReset === true && world.isReset && region.hasHeard === undefined) {
      yield [`${name} hears of the reset`, (to) => this.hearReset(to, index)];
    }
    if (index === 0 && region.hellos < (bounds.hellos ?? 0)) {
      yield [
        `${name} says hello`,
        (to) => {
          to.regions[index]!.hellos++;
          to.net.push({ to: 'home', region: index, caller: this.callerOf(to, index) });
        },
      ];
    }
  }

  private *failures(world: World): Iterable<[string, (world: World) => void]> {
    const { isShared = false, keepsSome = false } = this.bounds;
    if (world.homeFailures > 0) {
      if (world.copy === undefined) yield ['the home is copied', (to) => this.copyHome(to, isShared)];
      yield ['the home is restarted', (to) => this.replaceHome(to, to.home, isShared)];
      if (!keepsSome) yield ['the home is replaced by an empty one', (to) => this.replaceHome(to, undefined, isShared)];
      if (world.copy) yield ['the home is replaced by its copy', (to) => this.replaceHome(to, to.copy, isShared, true)];
    }
    if (world.regionFailures === 0) return;
    for (const [index, { copy }] of world.regions.entries()) {
      const name = nameOf(index);
      if (copy === undefined) yield [`${name} is copied`, (to) => this.copyRegion(to.regions[index]!)];
      yield [`${name} is restarted`, (to) => this.replaceRegion(to, index, to.regions[index])];
      if (!keepsSome) yield [`${name} is replaced by an empty one`, (to) => this.replaceRegion(to, index)];
      if (copy)
        yield [`${name} is replaced by its copy`, (to) => this.replaceRegion(to, index, to.regions[index]!.copy)];
    }
  }

  // What each step does.

  private timesOf({ tick }: World, shift: number): Times {
    return { now: tick, homeNow: tick + shift };
  }

  private pass(world: World): void {
    world.tick++;
    this.forgetUses(world);
  }

  private forgetUses(world: World): void {
    const { kind, interval } = this.terms;
    const since = kind === 'log' ? world.tick - interval + 1 : world.tick - (world.tick % interval);
    world.uses = world.uses.filter((time) => time >= since);
  }

  private poolOf(world: World, index: number): Pool {
    const region = world.regions[index]!;
    return (region.pool = this.protocol.poolOf(region.pool, region.history));
  }

  private callerOf(world: World, index: number): Caller {
    const { history: server, known, memory } = world.regions[index]!;
    return { region: nameOf(index), server, ...this.protocol.newest(known, memory) };
  }

  private use(world: World, index: number, times: Times): void {
    const [chargedAt] = this.protocol.spend(this.poolOf(world, index), times, 1);
    world.used++;
    // A reset forgets what was used of units that were granted before.
    if (chargedAt! > world.resetAt) world.uses.push(world.tick);
  }

  private refund(world: World, index: number, times: Times): void {
    world.refunds--;
    const time = world.uses.pop()!;
    world.used--;
    this.protocol.refund(this.poolOf(world, index), times, 1, time);
  }

  private ask(world: World, index: number, times: Times, waiting: number): void {
    const wish = this.protocol.ask(this.poolOf(world, index), times, waiting)!;
    world.open[keyOf(index, wish)] ??= { units: 0, isMade: false };
    world.net.push({ to: 'home', region: index, caller: this.callerOf(world, index), wish });
  }

  private nameOfStep(message: Message): string {
    if (message.to === 'home') return message.wish === undefined ? 'the home hears' : 'the home grants';
    if ('wish' in message) return this.isOneStep(message) ? 'the reply is deposited' : 'the reply is noted';
    return 'the reply is noted';
  }

  private isOneStep(message: { readonly isNoted?: true }): boolean {
    return message.isNoted === true || this.bounds.depositsAtOnce === true;
  }

  private deliver(world: World, message: Message): void {
    if (message.to === 'home') this.atHome(world, message);
    else if (!('wish' in message)) this.note(world, message.region, message.reply, message.shift);
    else if (message.isNoted === true) this.deposit(world, message);
    else if (this.note(world, message.region, message.reply, message.shift)) {
      if (this.bounds.depositsAtOnce === true) this.deposit(world, message);
      else world.net.push({ ...message, isNoted: true });
    }
  }

  private atHome(world: World, { region, caller, wish, wasReset }: Message & { to: 'home' }): void {
    const { home, server } = world;
    const { shift } = world;
    const now = world.tick + shift;
    if (wish === undefined) {
      const reply = this.protocol.hello(home, server, caller, now);
      world.net.push({ to: 'region', region, reply, shift });
      return;
    }
    const { reply, isMade, given } = this.protocol.grant(home, server, caller, wish, now);
    const open = world.open[keyOf(region, wish)];
    if (isMade) {
      world.granted += reply.units;
      if (open === undefined) giveUp(world, 'granted in an exchange that is over', reply.units);
      else {
        open.units += reply.units;
        if (!open.isMade) {
          world.returned += given;
          giveUp(world, 'not taken back by the home', sum(wish.back) - given);
          open.isMade = true;
        }
      }
    }
    world.net.push({ to: 'region', region, reply, wish, shift, ...(wasReset && { wasReset }) });
  }

  private note(world: World, index: number, reply: Known, shift: number): boolean {
    const region = world.regions[index]!;
    // The newest answer sets the clock, which is set back once.
    region.shift = Math.min(region.shift, shift);
    const remembered = this.protocol.newest(unknownHome(), region.memory);
    const known = this.protocol.note(region.known, reply);
    if (known === undefined || this.protocol.note(remembered, reply) === undefined) return false;
    region.known = known;
    region.memory = this.protocol.note(region.memory, reply) ?? region.memory;
    return true;
  }

  private deposit(
    world: World,
    { region: index, wish, reply, wasReset }: { region: number; wish: Wish; reply: Reply; wasReset?: true },
  ): void {
    const pool = this.poolOf(world, index);
    const held = pool.grants.reduce((all, [units]) => all + units, 0);
    const open = world.open[keyOf(index, pool.isOpen ? { id: pool.id, origin: pool.history } : wish)];
    if (!this.protocol.deposit(pool, wish, reply, world.tick, wasReset)) return;
    if (open === undefined) return;
    const taken = pool.grants.reduce((all, [units]) => all + units, 0) - held;
    giveUp(world, 'granted twice', open.units - taken);
    if (!open.isMade) giveUp(world, 'not sent back', sum(wish.back));
    delete world.open[keyOf(index, wish)];
  }

  private reset(world: World): void {
    world.isReset = true;
    world.home.counter = [];
    world.home.records = {};
    world.uses = [];
    world.resetAt = world.tick;
    this.pass(world);
  }

  /** The region's instances react to the reset, also for exchanges that are under way. */
  private hearReset(world: World, index: number): void {
    world.regions[index]!.hasHeard = true;
    this.protocol.forget(this.poolOf(world, index));
    for (const message of world.net) {
      if (message.region === index && 'wish' in message && message.wish !== undefined) message.wasReset = true;
    }
  }

  private copyHome(world: World, isShared: boolean): void {
    world.copy = structuredClone(world.home);
    if (isShared) this.copyRegion(world.regions[0]!);
  }

  private copyRegion(region: Region): void {
    const { pool, known } = region;
    region.copy = structuredClone({ ...(pool && { pool }), known });
  }

  private replaceHome(world: World, data: HomeData | undefined, isShared: boolean, isCopy = false): void {
    world.homeFailures--;
    const region = world.regions[0]!;
    if (isShared) this.replaceRegion(world, 0, data === undefined ? undefined : isCopy ? region.copy! : region);
    if (isShared) world.regionFailures++;
    world.home = data === undefined ? emptyHome() : structuredClone(data);
    delete world.copy;
    world.server++;
    this.callOfOthers(world);
  }

  private callOfOthers({ home, server, tick }: World): void {
    for (let i = 0; i < (this.bounds.others ?? 0); i++) {
      const caller = { region: `other ${i}`, server: 1, history: home.history, epoch: home.epoch, calls: 0 };
      const known = this.protocol.hello(home, server, caller, tick);
      this.protocol.hello(home, server, { ...caller, ...known, calls: 0 }, tick);
    }
  }

  private replaceRegion(world: World, index: number, data?: { readonly pool?: Pool; readonly known: Known }): void {
    world.regionFailures--;
    const region = world.regions[index]!;
    const { pool, history } = region;
    if (pool?.history === history) {
      giveUp(world, 'held by a server that was replaced', sum(pool.grants));
      const key = keyOf(index, { id: pool.id, origin: history });
      const open = world.open[key];
      if (pool.isOpen && open !== undefined) {
        giveUp(world, 'granted to a server that was replaced', open.units);
        if (!open.isMade) giveUp(world, 'sent back by a server that was replaced', sum(pool.back));
        delete world.open[key];
      }
    }
    const { pool: kept, known } = structuredClone(data ?? { known: unknownHome() });
    delete region.copy;
    delete region.pool;
    if (this.bounds.endsInstances === true) region.memory = unknownHome();
    Object.assign(region, { known, history: history + 1 }, kept && { pool: kept });
  }

  private helloNow(world: World, index: number): void {
    const { home, server, tick, shift } = world;
    this.note(world, index, this.protocol.hello(home, server, this.callerOf(world, index), tick + shift), shift);
  }

  /** Leaves out what makes no difference any more, so that fewer states differ. */
  private simplify(world: World): void {
    const { homeFailures = 0, regionFailures = 0 } = this.bounds;
    Object.assign(world, { granted: 0, used: 0, returned: 0, givenUp: {} });
    // No region is silent for long.
    for (const each of Object.values(world.home.regions)) each.seen = START;
    if (homeFailures + regionFailures === 0) {
      for (const each of Object.values(world.home.regions)) each.calls = 0;
      for (const { known, memory } of world.regions) known.calls = memory.calls = 0;
      // Nothing is left to learn from what belongs to an exchange that is over.
      if (this.terms.without === undefined) world.net = world.net.filter((message) => this.isOpen(world, message));
      for (const message of world.net) (message.to === 'home' ? message.caller : message.reply).calls = 0;
    }
    world.net.sort(byText);
  }

  private isOpen({ regions, home }: World, { region, wish }: Message & { readonly wish?: Wish }): boolean {
    const { pool } = regions[region]!;
    if (wish === undefined || (pool?.isOpen === true && pool.id === wish.id)) return true;
    return wish.id > (home.records[nameOf(region)]?.last ?? 0);
  }

  // What holds in every state.

  private problem(world: World): string | undefined {
    const { kind, quota } = this.terms;
    // Older uses have been forgotten.
    const { length } = world.uses;
    for (const [index, { hasHeard, pool, history, shift }] of world.regions.entries()) {
      if (hasHeard !== true || pool?.history !== history) continue;
      const times = this.timesOf(world, shift);
      const survives = pool.grants.some(
        (grant) => grant[1] <= world.resetAt && this.protocol.isUsable(grant, pool, times),
      );
      if (survives) return `${nameOf(index)} may use a unit that was granted before the reset`;
    }
    return length > quota
      ? `${length} of ${quota} units used ${kind === 'log' ? 'within an interval' : 'in a window'}`
      : undefined;
  }

  /** Units that a step granted are somewhere after it. */
  private missing(before: World, after: World): string | undefined {
    // Without what keeps the promise units may be in two places.
    if (this.terms.without !== undefined) return undefined;
    const { granted, used: uses, returned, givenUp } = after;
    for (const reason of Object.keys(givenUp)) this.reasons.add(reason);
    const gone = uses + returned + Object.values(givenUp).reduce((all, each) => all + each, 0);
    const missing = this.outOf(before) + granted - gone - this.outOf(after);
    return missing === 0 ? undefined : `${missing} units are nowhere`;
  }

  /** Units that regions hold, and those on their way. */
  private outOf(world: World): number {
    let units = 0;
    for (const { pool, history } of world.regions) if (pool?.history === history) units += sum(pool.grants);
    for (const [index, { pool, history }] of world.regions.entries()) {
      const open =
        pool?.isOpen === true && pool.history === history && world.open[keyOf(index, { id: pool.id, origin: history })];
      if (open) units += open.units + (open.isMade ? 0 : sum(pool.back));
    }
    return units;
  }

  /** Once all regions have heard of a reset, only what was used since counts, as soon as they have exchanged. */
  private lostByReset(from: World): string | undefined {
    if (this.bounds.hearsReset !== true || from.regions.some(({ hasHeard }) => hasHeard !== true)) return undefined;
    const world = structuredClone(from);
    world.net = [];
    for (let i = 0; i < 2; i++) for (const index of world.regions.keys()) this.exchangeNow(world, index, 0);
    const counted = used(this.protocol.open(world.home.counter, world.tick + world.shift));
    return counted > world.uses.length ? `${counted} units count, and ${world.uses.length} were used since` : undefined;
  }

  /** From here on nothing fails, and nobody uses anything: all that was not used comes back. What is on its way is lost. */
  private unrecovered(from: World): string | undefined {
    const lost = this.lostByReset(from);
    if (lost !== undefined) return lost;
    const { quota, interval, lifetime } = this.terms;
    const world = structuredClone(from);
    world.net = [];
    const ticks = 2 * (interval + lifetime) + (this.bounds.setBack ?? 0);
    for (let i = 0; i < ticks; i++) {
      this.pass(world);
      for (const index of world.regions.keys()) this.exchangeNow(world, index, 0);
    }
    const now = world.tick + world.shift;
    if (used(this.protocol.open(world.home.counter, now)) > 0) return 'units do not come back to the home';
    for (const [index, { pool, history }] of world.regions.entries()) {
      if (pool?.history === history && (pool.isOpen || pool.grants.length > 0))
        return 'a region does not give back its units';
      this.exchangeNow(world, index, quota);
      const here = this.protocol.usable(this.poolOf(world, index), this.timesOf(world, world.shift));
      if (here !== quota) return `a region gets ${here} of ${quota} units after everything came back`;
      this.exchangeNow(world, index, 0);
    }
    return undefined;
  }

  private exchangeNow(world: World, index: number, waiting: number): void {
    for (let i = 0; i < 2; i++) this.helloNow(world, index);
    const wish = this.protocol.ask(
      this.poolOf(world, index),
      this.timesOf(world, world.regions[index]!.shift),
      waiting,
    );
    if (wish === undefined) return;
    world.open[keyOf(index, wish)] ??= { units: 0, isMade: false };
    this.atHome(world, { to: 'home', region: index, caller: this.callerOf(world, index), wish });
    const message = world.net.pop() as Message & { readonly wish: Wish; readonly reply: Reply };
    if (this.note(world, index, message.reply, world.shift)) this.deposit(world, message);
  }
}

function newRegion(index: number): Region {
  return {
    history: 100 * (index + 1),
    known: unknownHome(),
    memory: unknownHome(),
    shift: 0,
    asks: 0,
    hellos: 0,
  };
}

function sum(grants: readonly (readonly [units: number, ...rest: number[]])[]): number {
  return grants.reduce((all, [units]) => all + units, 0);
}

function giveUp(world: World, reason: string, units: number): void {
  if (units > 0) world.givenUp[reason] = (world.givenUp[reason] ?? 0) + units;
}

function nameOf(index: number): string {
  return 'ABC'[index]!;
}

function keyOf(index: number, { id, origin }: Pick<Wish, 'id' | 'origin'>): string {
  return `${nameOf(index)}${origin}:${id}`;
}

function byText(one: Message, other: Message): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}
