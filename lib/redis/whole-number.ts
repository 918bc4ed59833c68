/** As a connection gives it that was told to give numbers as text. */
const TEXT = /^(?:0|-?[1-9]\d{0,15})$/;

/** The whole number that a script replied; nothing if it is none. */
export function readWholeNumber(given: unknown): number | undefined {
  const value = typeof given === 'string' && TEXT.test(given) ? Number(given) : given;
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}
