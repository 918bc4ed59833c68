import { cliMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';
import { type LoggedRequest, type ReadLine, reasons, type WantedFields } from './logged-request.js';
import { detectFormat, formatNamed } from './formats.js';
import { LineSplitter, MAX_LINE_LENGTH } from './line-reader.js';
import type { InputReport, SkippedLine } from './report.js';
import { Heap } from '../../engine/util/heap.js';

const MOST_HELD = 100_000;

/** A late request, and its rank among requests of the same time: after those that were in order. */
interface Late {
  readonly request: LoggedRequest;
  readonly order: number;
}

/**
 * Sorts requests by time. Each request is held back until one arrives that is later by the window, so that requests up to a window late get
 * their place. Requests in order are simply queued.
 */
export class ReorderBuffer {
  /** The requests in order, from `head` on. */
  private queue: LoggedRequest[] = [];
  private head = 0;
  private readonly late = new Heap(precedes);
  private latest = -Infinity;
  lateCount = 0;

  constructor(
    /** In microseconds. */
    private readonly window: number,
    private readonly onRequest: (request: LoggedRequest) => void,
  ) {}

  push(request: LoggedRequest): void {
    if (request.time >= this.latest) {
      this.latest = request.time;
      this.queue.push(request);
    } else this.late.add({ request, order: this.lateCount++ });
    while (this.held > MOST_HELD) this.handOn();
    while (this.held > 0 && this.earliest <= this.latest - this.window) this.handOn();
  }

  end(): void {
    while (this.held > 0) this.handOn();
  }

  private get held(): number {
    return this.queue.length - this.head + this.late.size;
  }

  private get earliest(): number {
    return Math.min(this.queue[this.head]?.time ?? Infinity, this.late.first?.request.time ?? Infinity);
  }

  private handOn(): void {
    const queued = this.queue[this.head];
    const late = this.late.first?.request;
    if (late !== undefined && (queued === undefined || late.time < queued.time)) {
      this.late.take();
      this.onRequest(late);
      return;
    }
    if (++this.head >= 1000 && this.head * 2 >= this.queue.length) {
      this.queue = this.queue.slice(this.head);
      this.head = 0;
    }
    this.onRequest(queued!);
  }
}

function precedes(one: Late, other: Late): boolean {
  const earlier = one.request.time - other.request.time;
  return earlier < 0 || (earlier === 0 && one.order < other.order);
}

/** The format is detected from this many lines at the start, or this many characters of them. */
const SAMPLE_LINES = 100;
const SAMPLE_CHARACTERS = 1_000_000;
/** Maximum number of skipped lines to display, and of characters of each. */
const SHOWN_SKIPPED = 5;
const SHOWN_CHARACTERS = 200;

export interface LogSettings {
  readonly format: string | undefined;
  readonly wanted: WantedFields;
  /** The maximum delay of a line that is still put in order, in microseconds. */
  readonly reorderWindow: number;
}

/** Reads a log in chunks, and passes its requests on in the order of their times. */
export class LogInput {
  private lines = 0;
  private skipped = 0;
  private filtered = 0;
  private readonly firstSkipped: SkippedLine[] = [];
  private readonly splitter = new LineSplitter((text) => this.addLine(text));
  private readonly reorder: ReorderBuffer;
  private format: string | undefined;
  private read: ReadLine | undefined;
  /** The first lines, until the format is detected. */
  private samples: { line: number; text: string }[] = [];
  private sampled = 0;

  constructor(
    private readonly settings: LogSettings,
    onRequest: (request: LoggedRequest) => void,
  ) {
    this.reorder = new ReorderBuffer(settings.reorderWindow, onRequest);
  }

  push(chunk: Buffer): void {
    this.splitter.push(chunk);
  }

  end(): void {
    this.splitter.end();
    if (this.read === undefined && this.samples.length > 0) this.begin();
    this.reorder.end();
  }

  /** The report about the input. Throws `InputError` if it contained no requests. */
  report(source: string, requests: number): InputReport {
    if (this.lines === 0) throw new InputError(cliMessages.emptyLog());
    if (requests === 0) {
      const [first] = this.firstSkipped;
      if (first === undefined && this.filtered > 0) throw new InputError(cliMessages.allFiltered(this.filtered));
      throw new InputError(cliMessages.nothingRead(first));
    }
    const skipped = { count: this.skipped, first: this.firstSkipped };
    const isFiltered = this.settings.wanted.filters.size > 0;
    return {
      source,
      format: this.format ?? null,
      lines: this.lines,
      ...(isFiltered && { filtered: this.filtered }),
      skipped,
      outOfOrder: this.reorder.lateCount,
    };
  }

  private addLine(given: string | undefined): void {
    this.lines++;
    if (given === undefined) return this.skip(this.lines, reasons.tooLong(MAX_LINE_LENGTH), '');
    // Some editors write a byte order mark.
    const text = this.lines === 1 && given.startsWith('\uFEFF') ? given.slice(1) : given;
    if (text === '') return;
    if (this.read !== undefined) return this.readLine(this.lines, text, this.read);
    this.samples.push({ line: this.lines, text });
    this.sampled += text.length;
    if (this.samples.length >= SAMPLE_LINES || this.sampled >= SAMPLE_CHARACTERS) this.begin();
  }

  /** Detects the format, and reads the lines that were used for that. */
  private begin(): void {
    const { samples } = this;
    const { format, wanted } = this.settings;
    const texts = samples.map(({ text }) => text);
    const found = format === undefined ? detectFormat(texts) : formatNamed(format);
    this.format = found.name;
    const read = (this.read = found.reader(wanted, texts));
    this.samples = [];
    for (const { line, text } of samples) this.readLine(line, text, read);
  }

  private readLine(line: number, text: string, read: ReadLine): void {
    const request = read(text);
    if (request === undefined) this.filtered++;
    else if (typeof request === 'string') this.skip(line, request, text);
    else this.reorder.push(request);
  }

  private skip(line: number, reason: string, text: string): void {
    this.skipped++;
    if (this.firstSkipped.length >= SHOWN_SKIPPED) return;
    this.firstSkipped.push({ line, reason, text: text.slice(0, SHOWN_CHARACTERS) });
  }
}
