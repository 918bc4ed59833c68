import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runProcesses } from './run-processes.js';

const TASK = pathToFileURL(join(process.cwd(), 'test/support/processes/process-task.mjs')).href;

describe('runProcesses', () => {
  let folder: string;

  const script = async (name: string, task: string): Promise<string> => {
    const path = join(folder, name);
    await writeFile(path, `import { runTask } from ${JSON.stringify(TASK)};\nawait runTask(${task});\n`);
    return path;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-processes-'));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('collects the results of several processes in the order of their inputs', async () => {
    const path = await script('square.mjs', 'async ({ n }) => ({ square: n * n, pid: process.pid })');
    const results = await runProcesses<{ square: number; pid: number }>(
      path,
      [1, 2, 3, 4].map((n) => ({ n })),
    );
    expect(results.map(({ square }) => square)).toEqual([1, 4, 9, 16]);
    expect(new Set(results.map(({ pid }) => pid)).size).toBe(4);
  });

  it('lets them start together', async () => {
    const task = `async ({ boot }, start) => {
      await new Promise((resolve) => setTimeout(resolve, boot));
      const ready = Date.now();
      await start();
      return { ready, started: Date.now() };
    }`;
    const inputs = [{ boot: 0 }, { boot: 300 }];
    const results = await runProcesses<{ ready: number; started: number }>(await script('start.mjs', task), inputs);
    const lastReady = Math.max(...results.map(({ ready }) => ready));
    expect(results.every(({ started }) => started >= lastReady)).toBe(true);
  });

  it('does something meanwhile, and tells them when that is over', async () => {
    const task = `async (_, start, stopped) => {
      await start();
      await stopped;
      return Date.now();
    }`;
    let over = 0;
    const during = async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      over = Date.now();
    };
    const ended = await runProcesses<number>(await script('meanwhile.mjs', task), [{}, {}], { during });
    expect(Math.min(...ended)).toBeGreaterThanOrEqual(over);
    expect(over).toBeGreaterThan(0);
    const failing = runProcesses(await script('meanwhile.mjs', task), [{}], {
      during: () => Promise.reject(new Error('nothing happened')),
    });
    await expect(failing).rejects.toThrow('nothing happened');
  });

  it('tells what a process that failed wrote', async () => {
    const path = await script('fail.mjs', 'async () => { throw new Error("out of order"); }');
    await expect(runProcesses(path, [{}])).rejects.toThrow('out of order');
  });

  it('ends them all when one fails or the time is up', async () => {
    const task = `async ({ fail }, start) => {
      await start();
      if (fail) throw new Error('one of two');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    }`;
    const path = await script('hang.mjs', task);
    await expect(runProcesses(path, [{ fail: true }, {}])).rejects.toThrow('one of two');
    await expect(runProcesses(path, [{}], { timeoutMs: 500 })).rejects.toThrow('not done within 500 ms');
  });
});
