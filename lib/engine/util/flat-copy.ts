/** The maximum number of characters for which this copy is fast. */
const MOST_CHARACTERS = 128;

const characters = Buffer.alloc(2 * MOST_CHARACTERS);

/**
 * Copies a string so that it doesn't keep anything else in memory. A substring keeps the whole string alive: an address from a header keeps
 * the entire header, whose length the client determines.
 */
export function flatCopy(text: string): string {
  if (text.length > MOST_CHARACTERS) return Buffer.from(text, 'utf16le').toString('utf16le');
  const copy = characters.toString('latin1', 0, characters.write(text, 'latin1'));
  return copy === text ? copy : characters.toString('utf16le', 0, characters.write(text, 'utf16le'));
}
