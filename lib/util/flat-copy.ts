/** Longer strings are copied in a slower way. */
const MOST_CHARACTERS = 128;

const characters = Buffer.alloc(2 * MOST_CHARACTERS);

/**
 * A copy that holds on to nothing else. A string that was cut out of a longer one keeps all of that alive, as an address from a
 * header does with the header, which its client may have made as long as it liked.
 */
export function flatCopy(text: string): string {
  if (text.length > MOST_CHARACTERS) return Buffer.from(text, 'utf16le').toString('utf16le');
  const copy = characters.toString('latin1', 0, characters.write(text, 'latin1'));
  return copy === text ? copy : characters.toString('utf16le', 0, characters.write(text, 'utf16le'));
}
