/** Longer strings are copied more slowly. */
const MOST_CHARACTERS = 128;

const characters = Buffer.alloc(2 * MOST_CHARACTERS);

/**
 * Copies a string so that it retains nothing else. A string that was cut out of a longer one keeps all of that one alive: an
 * address from a header keeps the whole header, which the client may have made as long as it liked.
 */
export function flatCopy(text: string): string {
  if (text.length > MOST_CHARACTERS) return Buffer.from(text, 'utf16le').toString('utf16le');
  const copy = characters.toString('latin1', 0, characters.write(text, 'latin1'));
  return copy === text ? copy : characters.toString('utf16le', 0, characters.write(text, 'utf16le'));
}
