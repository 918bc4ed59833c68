import type { ServerResponse } from 'node:http';
import type { Tick, TopKeys } from '../api.js';
import { consoleMessages } from '../../errors/messages/console.js';
import { ConsoleProblem } from '../problem.js';

/** The most viewers of one instance. */
export const MOST_VIEWERS = 32;
/** A second is told so long after its end: by then, all instances have stored what they counted. */
const LAG_MS = 300;
/** A viewer that takes nothing for so many seconds is gone. */
const MOST_SKIPPED = 10;

/** Somebody who looks. */
interface Viewer {
  readonly response: ServerResponse;
  /** From where: its client's address. */
  readonly from: string;
  /** The limit whose keys are looked at. */
  readonly top: string | undefined;
  skipped: number;
}

/** Tells viewers once a second what happened. While nobody looks, it does nothing. */
export class LiveFeed {
  private readonly viewers = new Set<Viewer>();
  private timer: NodeJS.Timeout | undefined;
  /** All viewers are being told. */
  private isTelling = false;
  private isClosed = false;

  constructor(
    private readonly tick: () => Promise<Tick>,
    private readonly topOf: (label: string) => Promise<TopKeys>,
    private readonly now: () => number,
  ) {}

  get size(): number {
    return this.viewers.size;
  }

  /** Makes room for a viewer. Whoever has most of the places gives one to those who have fewer; else throws a `ConsoleProblem`. */
  makeRoom(from: string): void {
    if (!this.isClosed && this.viewers.size < MOST_VIEWERS) return;
    const places = new Map<string, Viewer[]>();
    for (const viewer of this.viewers) places.set(viewer.from, [...(places.get(viewer.from) ?? []), viewer]);
    const most = [...places.values()].toSorted((one, other) => other.length - one.length)[0] ?? [];
    if (this.isClosed || most.length <= (places.get(from)?.length ?? 0) + 1) {
      throw new ConsoleProblem(503, consoleMessages.tooManyViewers(MOST_VIEWERS), [], 5);
    }
    this.viewers.delete(most[0]!);
    most[0]!.response.end();
  }

  /** Tells a viewer from now on, until he leaves. */
  add(response: ServerResponse, headers: Readonly<Record<string, string>>, top: string | undefined, from = ''): void {
    const viewer = { response, from, top, skipped: 0 };
    const leave = () => void this.viewers.delete(viewer);
    response.on('close', leave);
    response.on('error', leave);
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      // Proxies and middlewares pass events on at once.
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    // Who asks for the headers alone would never be done.
    if (response.req.method === 'HEAD') {
      response.end();
      return;
    }
    response.write('retry: 2000\n\n');
    this.viewers.add(viewer);
    if (this.timer === undefined && !this.isTelling) void this.tell();
    else void this.tellAll([viewer]);
  }

  /** Ends all answers. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const { response } of this.viewers) response.end();
    this.viewers.clear();
  }

  private arm(): void {
    const toSecond = 1000 - (this.now() % 1000);
    const wait = toSecond + LAG_MS > 1000 + LAG_MS / 2 ? toSecond + LAG_MS - 1000 : toSecond + LAG_MS;
    this.timer = setTimeout(() => void this.tell(), wait).unref();
  }

  private async tell(): Promise<void> {
    this.timer = undefined;
    this.isTelling = true;
    await this.tellAll([...this.viewers]);
    this.isTelling = false;
    if (this.viewers.size > 0 && !this.isClosed) this.arm();
  }

  private async tellAll(viewers: readonly Viewer[]): Promise<void> {
    try {
      const tick = await this.tick();
      const labels = new Set(viewers.flatMap(({ top }) => top ?? []));
      const tops = new Map(
        await Promise.all([...labels].map(async (label) => [label, await this.topOf(label)] as const)),
      );
      for (const viewer of viewers) {
        const top = viewer.top === undefined ? undefined : tops.get(viewer.top);
        this.send(viewer, `event: tick\ndata: ${JSON.stringify(top === undefined ? tick : { ...tick, top })}\n\n`);
      }
    } catch {
      for (const viewer of viewers) this.send(viewer, ': nothing could be read\n\n');
    }
  }

  private send(viewer: Viewer, text: string): void {
    const { response } = viewer;
    if (response.writableEnded || response.destroyed) return;
    if (response.writableNeedDrain) {
      if (++viewer.skipped > MOST_SKIPPED) response.destroy();
      return;
    }
    viewer.skipped = 0;
    response.write(text);
    (response as { flush?: () => void }).flush?.();
  }
}
