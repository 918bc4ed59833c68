import { cliMessages } from '../../engine/errors/messages/cli.js';
import { InputError } from '../command.js';
import { reasons } from './fields.js';
import { detectFormat, formatNamed } from './formats.js';
import { LineSplitter, MAX_LINE_LENGTH } from './line-splitter.js';
import type { LoggedRequest, ReadLine, WantedFields } from './logged-request.js';
import { ReorderBuffer } from './reorder-buffer.js';
import type { InputReport, SkippedLine } from './report.js';

/** The format is detected from this many of the first lines, or this many characters of them. */
const SAMPLE_LINES = 100;
const SAMPLE_CHARACTERS = 1_000_000;
/** The most skipped lines to show, and the most characters of each. */
const SHOWN_SKIPPED = 5;
const SHOWN_CHARACTERS = 200;

/** How to read a log. */
export interface LogSettings {
  readonly format: string | undefined;
  readonly wanted: WantedFields;
  /** How late a line may be and still be put in order, in microseconds. */
  readonly reorderWindow: number;
}

/** Reads a log chunk by chunk, and passes its requests on in the order of their times. */
export class LogInput {
  private lines = 0;
  private skipped = 0;
  private filtered = 0;
  private readonly firstSkipped: SkippedLine[] = [];
  private readonly splitter = new LineSplitter((text) => this.addLine(text));
  private readonly reorder: ReorderBuffer;
  private format: string | undefined;
  private read: ReadLine | undefined;
  /** The first lines, until the format is known. */
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

  /** Called at the end of the log. */
  end(): void {
    this.splitter.end();
    if (this.read === undefined && this.samples.length > 0) this.begin();
    this.reorder.end();
  }

  /** A report on what was read. Throws `InputError` if there were no requests. */
  report(source: string, requests: number): InputReport {
    if (this.lines === 0) throw new InputError(cliMessages.emptyLog());
    if (requests === 0) {
      const [first] = this.firstSkipped;
      if (first === undefined && this.filtered > 0) throw new InputError(cliMessages.allFiltered(this.filtered));
      throw new InputError(cliMessages.nothingRead(first));
    }
    const skipped = { count: this.skipped, first: this.firstSkipped };
    const { path, status } = this.settings.wanted.filters;
    const isFiltered = path !== undefined || status !== undefined;
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

  /** Detects the format, and reads the lines it was detected from. */
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
