import type { ServerResponse } from 'node:http';
import type { Tick, TopKeys } from '../api.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { ConsoleProblem } from '../problem.js';

/** Maximum number of viewers of one instance. */
export const MOST_VIEWERS = 32;
/** The delay after a second before it is sent. By then, all instances have stored their counts. */
const LAG_MS = 300;
/** A viewer that reads nothing for this many seconds is removed. */
const MOST_SKIPPED = 10;

interface Viewer {
  readonly response: ServerResponse;
  /** The address of its client. */
  readonly from: string;
  /** The limit whose keys it displays. */
  readonly top: string | undefined;
  skipped: number;
}

/** Sends viewers the newest data once per second. Does nothing without viewers. */
export class LiveFeed {
  private readonly viewers = new Set<Viewer>();
  private timer: NodeJS.Timeout | undefined;
  /** True while data is being sent to viewers. */
  private isPublishing = false;
  private isClosed = false;

  constructor(
    private readonly tick: () => Promise<Tick>,
    private readonly topOf: (label: string) => Promise<TopKeys>,
    private readonly now: () => number,
  ) {}

  get size(): number {
    return this.viewers.size;
  }

  /**
   * Makes room for a viewer: the client with the most places gives one up to a client with fewer. Throws a `ConsoleProblem` if no client
   * does.
   */
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

  /** Sends data to a viewer until it leaves. */
  add(response: ServerResponse, headers: Readonly<Record<string, string>>, top: string | undefined, from = ''): void {
    const viewer = { response, from, top, skipped: 0 };
    const leave = () => void this.viewers.delete(viewer);
    response.on('close', leave);
    response.on('error', leave);
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      // Makes proxies and middleware forward events immediately.
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    // A HEAD request would never end.
    if (response.req.method === 'HEAD') {
      response.end();
      return;
    }
    response.write('retry: 2000\n\n');
    this.viewers.add(viewer);
    if (this.timer === undefined && !this.isPublishing) void this.publish();
    else void this.publishTo([viewer]);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    for (const { response } of this.viewers) response.end();
    this.viewers.clear();
  }

  private arm(): void {
    const toSecond = 1000 - (this.now() % 1000);
    const wait = toSecond + LAG_MS > 1000 + LAG_MS / 2 ? toSecond + LAG_MS - 1000 : toSecond + LAG_MS;
    this.timer = setTimeout(() => void this.publish(), wait).unref();
  }

  private async publish(): Promise<void> {
    this.timer = undefined;
    this.isPublishing = true;
    await this.publishTo([...this.viewers]);
    this.isPublishing = false;
    if (this.viewers.size > 0 && !this.isClosed) this.arm();
  }

  private async publishTo(viewers: readonly Viewer[]): Promise<void> {
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
