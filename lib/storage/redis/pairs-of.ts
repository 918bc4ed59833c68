/** A reply of fields and values: a list, or with RESP3 an object. */
export function pairsOf(reply: unknown): [string, string][] {
  if (!Array.isArray(reply)) return Object.entries(reply as Record<string, string>);
  return Array.from({ length: reply.length / 2 }, (_, index) => [
    String(reply[2 * index]),
    String(reply[2 * index + 1]),
  ]);
}
