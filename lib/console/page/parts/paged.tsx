import type { JSX } from 'preact';
import { useId } from 'preact/hooks';
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
  return (
    <nav class="pager" aria-label={`Pages of ${what}`}>
      <button type="button" class="button small" aria-disabled={page === 1} onClick={() => page > 1 && turn(page - 1)}>
        Back
      </button>
      <span class="numbers" role="status">
        {whole(first)} to {whole(first + shown.length - 1)} of {whole(all)}
      </span>
      <button
        type="button"
        class="button small"
        aria-disabled={page === pages}
        onClick={() => page < pages && turn(page + 1)}
      >
        Next
      </button>
    </nav>
  );
}

function turn(to: number): void {
  setParams({ page: to === 1 ? '' : String(to) });
}

/** A field that filters a list by text. The text is in the address, so don't use it for identities. */
export function Find({ what, found }: { what: string; found: number }): JSX.Element {
  const id = useId();
  const [find, setFind] = useParam('find', '');
  return (
    <div class="find">
      <label for={id} class="hidden-text">
        Find {what}
      </label>
      <input
        id={id}
        type="search"
        autoComplete="off"
        spellcheck={false}
        placeholder={`Find ${what}`}
        value={find}
        onInput={(event) => setFind(event.currentTarget.value)}
      />
      <span class="hidden-text" role="status">
        {find === '' ? '' : `${plural(found, 'match', 'matches')} for ${find}`}
      </span>
    </div>
  );
}

/** Returns true if a text contains all words of the search. */
export function matches(text: string, find: string): boolean {
  const lower = text.toLowerCase();
  const words = find.toLowerCase().split(/\s+/);
  return words.every((word) => lower.includes(word));
}
