import { createReadStream } from 'node:fs';
import { access, constants, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Writable } from 'node:stream';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { type Command, InputError, type Terminal, UsageError, writeOutput } from '../command.js';
import { printableJson, showMs } from '../../engine/util/printable.js';
import { reasonOf } from '../../engine/errors/reasons.js';
import { chartOf, lookOf, tableOf } from './text-report.js';
import { generate } from './generator.js';
import { LogInput } from './log-input.js';
import { reportOf } from './report.js';
import { readSettings, SIMULATE_OPTIONS, type SimulateSettings } from './settings.js';
import { Simulation } from './simulation.js';

/** Progress is only displayed after this time. */
const AFTER_MS = 500;
const EVERY_MS = 200;
const CLEARED = '\r\u001B[K';

/** A line on a terminal that displays how much of the input has been read. */
export class Progress {
  private readonly began: number;
  private last = -Infinity;
  private read = 0;
  private isShown = false;

  /** @param total the bytes of the input; `undefined` if unknown */
  constructor(
    private readonly stream: Writable & { readonly isTTY?: boolean },
    private readonly total: number | undefined,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.began = now();
  }

  add(bytes: number): void {
    this.read += bytes;
    if (this.stream.isTTY !== true) return;
    const now = this.now();
    if (now - this.began < AFTER_MS || now - this.last < EVERY_MS) return;
    this.last = now;
    this.isShown = true;
    this.stream.write(CLEARED + this.text(now - this.began));
  }

  end(): void {
    if (this.isShown) this.stream.write(CLEARED);
  }

  private text(passedMs: number): string {
    const { read, total } = this;
    if (total === undefined || total < read) return `${sizeOf(read)} read`;
    const left = (passedMs / read) * (total - read);
    return `${Math.floor((100 * read) / total)}% of ${sizeOf(total)}, ${showMs(Math.ceil(left / 1000) * 1000)} left`;
  }
}

function sizeOf(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

const CHUNK_BYTES = 1 << 20;

export const simulateCommand: Command = {
  usage: ['--limit <limit> [options] <log | ->', '--limit <limit> --generate poisson:80/s [options]'],
  about: `Runs limits over the requests of an access log, each at its own time, and reports which
requests they would have allowed and rejected. A request uses units only if all limits
allow it.

A limit is algo:rate/interval[,option=value...][@name], such as
  gcra:60/1s                      gcra:60/1s,burst=120@api
  sliding-window:1000/1m          sliding-log:5/15m,blockFor=1h
  calendar-window:1000/day,timezone=Europe/Berlin
  token-bucket:5/10s,burst=20     gcra:500/1s,key=global,mode=shadow
  sliding-log:5/15m,blockFor=1m/10m/1h,forgetAfter=1d
Its options are those of the algorithm, blockFor, strike, forgetAfter, mode and key. If
tenants share units, simulate the total: omit 'share'.`,
  options: SIMULATE_OPTIONS,
  exits: { 1: 'the log cannot be read' },
  async run(read, terminal) {
    const settings = await readSettings(read);
    if (settings.svg !== undefined) await assertWritable(settings.svg, settings.input);
    const simulation = new Simulation(settings.limits, settings.maxKeys);
    const input = await runInput(settings, simulation, terminal);
    const report = reportOf(simulation, input);
    if (settings.svg !== undefined) await writeOutput(settings.svg, chartOf(report));
    terminal.stdout.write(settings.json ? `${printableJson(report)}\n` : tableOf(report, lookOf(terminal.stdout)));
    return 0;
  },
};

async function runInput({ input, keys }: SimulateSettings, simulation: Simulation, terminal: Terminal) {
  if (input.kind === 'generated') {
    for (const request of generate(input.generated, keys)) simulation.decide(request);
    const { allowed, refused } = simulation;
    if (allowed + refused === 0) throw new InputError(cliMessages.nothingGenerated());
    const skipped = { count: 0, first: [] };
    return { source: input.spec, format: null, lines: allowed + refused, skipped, outOfOrder: 0 };
  }
  const isStdin = input.path === '-';
  const log = new LogInput(input.log, (request) => simulation.decide(request));
  const size = isStdin ? undefined : (await stat(input.path).catch(() => undefined))?.size;
  const stream = isStdin ? terminal.stdin : createReadStream(input.path, { highWaterMark: CHUNK_BYTES });
  const source = isStdin ? 'the standard input' : input.path;
  const progress = new Progress(terminal.stderr, size);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      log.push(chunk);
      progress.add(chunk.length);
    }
  } catch (error) {
    const isOfStream =
      error === stream.errored || (error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE';
    throw isOfStream ? new InputError(cliMessages.unreadableFile(source, reasonOf(error))) : error;
  } finally {
    progress.end();
  }
  log.end();
  return log.report(source, simulation.allowed + simulation.refused);
}

/** Checks before reading the log that a chart can be written, and that it wouldn't overwrite the log. */
async function assertWritable(path: string, input: SimulateSettings['input']): Promise<void> {
  const target = await realpath(path).catch(() => undefined);
  if (target !== undefined && input.kind === 'log') {
    const log = await realpath(input.path).catch(() => undefined);
    if (log === target) throw new UsageError(cliMessages.svgIsInput(path));
  }
  try {
    await access(target ?? dirname(path), constants.W_OK);
    if (target !== undefined && (await stat(target)).isDirectory()) throw new Error('it is a folder');
  } catch (error) {
    throw new UsageError(cliMessages.unwritableFile(path, reasonOf(error)));
  }
}
