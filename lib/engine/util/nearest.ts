/**
 * The most similar word in a list, which was probably meant; `undefined` if none is similar. If more than one letter is wrong, the first
 * letter has to be right.
 */
export function nearest(word: string, list: readonly string[]): string | undefined {
  let least = Math.round(word.length * 0.4) + 1;
  let found: string | undefined;
  for (const each of list) {
    const edits =
      Math.abs(each.length - word.length) < least ? editsBetween(word.toLowerCase(), each.toLowerCase()) : least;
    const isFar = edits > 1 && each[0]?.toLowerCase() !== word[0]?.toLowerCase();
    if (edits >= least || isFar) continue;
    least = edits;
    found = each;
  }
  return found;
}

/** The number of letters to insert, delete, replace or swap to turn one word into another (Damerau-Levenshtein distance). */
export function editsBetween(one: string, other: string): number {
  let before: number[] = [];
  let last: number[] = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let edits = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwapped) edits = Math.min(edits, before[j - 2]! + 1);
      row.push(edits);
    }
    before = last;
    last = row;
  }
  return last[other.length]!;
}
