import { StringDecoder } from 'node:string_decoder';

/** The longest line to read. */
export const MAX_LINE_LENGTH = 65_536;

/** Splits bytes into lines. A line that is too long is never held as a whole: it is reported without its text. */
export class LineSplitter {
  private readonly decoder = new StringDecoder('utf8');
  /** The beginning of a line that continues in the next chunk; empty for one that is too long. */
  private pending: string[] = [];
  private pendingLength = 0;

  /** `onLine` gets no text for a line that is too long. */
  constructor(private readonly onLine: (text: string | undefined) => void) {}

  push(chunk: Buffer): void {
    this.cut(this.decoder.write(chunk));
  }

  /** The last line may lack a line end. */
  end(): void {
    this.cut(this.decoder.end());
    if (this.pendingLength > 0) this.flush();
  }

  private cut(text: string): void {
    let start = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
      const line = text.slice(start, end);
      if (this.pendingLength === 0) this.line(line);
      else {
        this.hold(line);
        this.flush();
      }
      start = end + 1;
    }
    if (start < text.length) this.hold(text.slice(start));
  }

  private hold(part: string): void {
    this.pendingLength += part.length;
    if (this.isTooLong) this.pending = [];
    else this.pending.push(part);
  }

  private flush(): void {
    const line = this.isTooLong ? undefined : this.pending.join('');
    this.pending = [];
    this.pendingLength = 0;
    if (line === undefined) this.onLine(undefined);
    else this.line(line);
  }

  /** A carriage return at the end does not count. */
  private get isTooLong(): boolean {
    return this.pendingLength > MAX_LINE_LENGTH + 1;
  }

  private line(text: string): void {
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    this.onLine(line.length > MAX_LINE_LENGTH ? undefined : line);
  }
}
