/** A range of a text, and its replacement. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Edits of a text by ranges. The rest of the text is unchanged. */
export class Edits {
  private list: Edit[] = [];

  constructor(readonly original: string) {}

  get isEmpty(): boolean {
    return this.list.length === 0;
  }

  insert(at: number, text: string): void {
    if (text !== '') this.list.push({ start: at, end: at, text });
  }

  /** Replaces a range together with all edits inside it, except insertions at its ends. */
  replace(start: number, end: number, text: string): void {
    this.list = this.list.filter(
      (edit) =>
        edit.start < start || edit.end > end || (edit.start === edit.end && (edit.start === start || edit.end === end)),
    );
    this.list.push({ start, end, text });
  }

  /** Replaces a range together with all edits inside it and at its ends. */
  rewrite(start: number, end: number, text: string): void {
    this.list = this.list.filter((edit) => edit.start < start || edit.end > end);
    this.list.push({ start, end, text });
  }

  /** Returns true if no edit replaces a range or a part of it. */
  keeps(start: number, end: number): boolean {
    return this.list.every((edit) => edit.end <= start || edit.start >= end);
  }

  /** A part of the text with the edits inside it applied. */
  render(start = 0, end = this.original.length): string {
    const inside = this.list
      .map((edit, order) => ({ ...edit, order }))
      .filter((edit) => edit.start >= start && edit.end <= end)
      // An insertion at the start of a range comes before the replacement of the range.
      .toSorted((a, b) => a.start - b.start || Number(a.end > a.start) - Number(b.end > b.start) || a.order - b.order);
    let text = '';
    let at = start;
    for (const edit of inside) {
      if (edit.start < at) continue;
      text += this.original.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.original.slice(at, end);
  }
}
