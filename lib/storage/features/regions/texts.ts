/** Reads a JSON list of `count` texts; `undefined` if it has another form. */
export function readTexts(json: string, count: number): readonly string[] | undefined {
  let read: unknown;
  try {
    read = JSON.parse(json);
  } catch {
    return undefined;
  }
  const isList = Array.isArray(read) && read.length === count && read.every((part) => typeof part === 'string');
  return isList ? (read as string[]) : undefined;
}
