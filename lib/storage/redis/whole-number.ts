/** A whole number from a connection that is set to return numbers as text. */
const TEXT = /^(?:0|-?[1-9]\d{0,15})$/;

/** Reads a whole number of a reply; `undefined` if it is not one. */
export function readWholeNumber(given: unknown): number | undefined {
  const value = typeof given === 'string' && TEXT.test(given) ? Number(given) : given;
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}
