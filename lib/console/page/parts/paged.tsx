import type { ComponentChildren, JSX } from 'preact';
import { plural, whole } from '../data/format.js';
import { setParams, useParam } from '../data/route.js';

/** The current page of a list, and functions to turn pages. */
export interface Paged<T> {
  readonly shown: readonly T[];
  readonly page: number;
  readonly pages: number;
  readonly all: number;
  readonly size: number;
}

/** Displays a list in pages. The page is in the address. */
export function usePaged<T>(items: readonly T[], size: number): Paged<T> {
  const [wanted] = useParam('page', '1');
  const pages = Math.max(1, Math.ceil(items.length / size));
  const page = Math.min(pages, Math.max(1, Math.floor(Number(wanted)) || 1));
  return { shown: items.slice((page - 1) * size, page * size), page, pages, all: items.length, size };
}

/** Buttons that turn the pages of a list; nothing for a single page. */
export function Pager<T>({ of: { page, pages, all, size, shown }, what }: { of: Paged<T>; what: string }): JSX.Element {
  const first = (page - 1) * size + 1;
  if (pages === 1) return <></>;
  const turn = (by: number): void => setParams({ page: page + by === 1 ? '' : String(page + by) });
  return (
    <PageTurns what={what} hasBack={page > 1} hasNext={page < pages} onTurn={turn}>
      <span class="numbers" role="status">
        {whole(first)} to {whole(first + shown.length - 1)} of {whole(all)}
      </span>
    </PageTurns>
  );
}

interface Turns {
  readonly what: string;
  readonly hasBack: boolean;
  readonly hasNext: boolean;
  onTurn: (by: 1 | -1) => void;
  readonly children?: ComponentChildren;
}

export function PageTurns({ what, hasBack, hasNext, onTurn, children }: Turns): JSX.Element {
  return (
    <nav class="pager" aria-label={`Pages of ${what}`}>
      <button type="button" class="button small" aria-disabled={!hasBack} onClick={() => hasBack && onTurn(-1)}>
        Back
      </button>
      {children}
      <button type="button" class="button small" aria-disabled={!hasNext} onClick={() => hasNext && onTurn(1)}>
        Next
      </button>
    </nav>
  );
}

/** A field that filters a list by text. The text is in the address, so don't use it for identities. */
export function Find({ what, found }: { what: string; found: number }): JSX.Element {
  const [find, setFind] = useParam('find', '');
  return (
    <Search label={`Find ${what}`} value={find} onInput={setFind}>
      <span class="hidden-text" role="status">
        {find === '' ? '' : `${plural(found, 'match', 'matches')} for ${find}`}
      </span>
    </Search>
  );
}

interface Searching {
  readonly label: string;
  /** @default the label */
  readonly placeholder?: string;
  readonly value: string;
  onInput: (text: string) => void;
  readonly children?: ComponentChildren;
}

export function Search({ label, placeholder = label, value, onInput, children }: Searching): JSX.Element {
  return (
    <div class="find">
      <input
        type="search"
        aria-label={label}
        autoComplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      {children}
    </div>
  );
}

/** Returns true if a text contains all words of the search. */
export function matches(text: string, find: string): boolean {
  const lower = text.toLowerCase();
  const words = find.toLowerCase().split(/\s+/);
  return words.every((word) => lower.includes(word));
}
