import { afterEach, describe, expect, it } from '@jest/globals';
import { until } from '../support/time/until.js';
import { ConsoleApp, type Problem, type Tick } from './console-app.js';

/** Reads events until it is stopped. */
class Viewer {
  readonly ticks: Tick[] = [];
  ended = false;
  private readonly controller = new AbortController();

  static async open(app: ConsoleApp, query = ''): Promise<Viewer> {
    const viewer = new Viewer();
    const headers = { 'x-user': 'ops', 'accept-encoding': 'gzip, br' };
    const { signal } = viewer.controller;
    const response = await fetch(`${app.url}/ops/limits/api/live${query}`, { headers, signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
    void viewer.read(response.body!);
    return viewer;
  }

  close(): void {
    this.controller.abort();
  }

  private async read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = '';
    try {
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          const [, data] = /^event: tick\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
          if (data !== undefined) this.ticks.push(JSON.parse(data) as Tick);
          text = text.slice(end + 2);
        }
      }
    } catch {
      // It was stopped.
    }
    this.ended = true;
  }
}

describe.each([
  ['Express', false],
  ['Fastify', true],
])('the live data of the console on %s', (_, fastify) => {
  let app: ConsoleApp;
  let viewers: Viewer[] = [];
  const open = async (query?: string) => {
    const viewer = await Viewer.open(app, query);
    viewers.push(viewer);
    return viewer;
  };

  afterEach(async () => {
    for (const viewer of viewers) viewer.close();
    viewers = [];
    await app.close();
  });

  it('tell each second once, exactly, and the most active keys', async () => {
    app = await ConsoleApp.start({ fastify, console: { identities: 'plain' } });
    const viewer = await open('?limit=things&top=1');
    await until(() => viewer.ticks.length > 0);
    for (let call = 0; call < 13; call++) await app.service.for('things').consume('anna');
    const sums = () => {
      const seconds = new Map<number, number>();
      for (const { series } of viewer.ticks) {
        const { allowed = [], refused = [] } = series.limits['things'] ?? {};
        for (const [index, time] of series.times.entries()) {
          seconds.set(time, (allowed[index] ?? 0) + (refused[index] ?? 0));
        }
      }
      return [...seconds.values()].reduce((sum, count) => sum + count, 0);
    };
    await until(() => sums() === 13);
    const last = viewer.ticks.at(-1)!;
    expect(last).toMatchObject({ stepMs: 1000, redis: null, instances: [{ self: true, circuit: 'none' }] });
    await until(() => viewer.ticks.at(-1)!.top!.refused.length > 0);
    expect(viewer.ticks.at(-1)!.top).toMatchObject({
      limit: 'things',
      refused: [{ identity: 'anna', count: 3 }],
      used: [{ identity: 'anna', count: 10 }],
    });
  });

  it('end when the app does', async () => {
    app = await ConsoleApp.start({ fastify });
    const viewer = await open();
    await until(() => viewer.ticks.length > 0);
    await app.nest.close();
    await until(() => viewer.ended);
  });

  it('end at once for those who ask for the headers alone', async () => {
    app = await ConsoleApp.start({ fastify });
    const response = await fetch(`${app.url}/ops/limits/api/live`, { method: 'HEAD', headers: { 'x-user': 'ops' } });
    expect(response.status).toBe(200);
    expect(app.console.live.size).toBe(0);
  });

  it('are for a bounded number of viewers, who make room when they leave', async () => {
    app = await ConsoleApp.start({ fastify });
    for (let viewer = 0; viewer < 32; viewer++) await open();
    const response = await app.get('ops/limits/api/live');
    const problem = (await response.json()) as Problem;
    expect([response.status, problem.detail]).toEqual([503, expect.stringContaining('32 viewers')]);
    viewers.pop()!.close();
    await until(() => app.console.live.size === 31);
    await open();
  });
});
