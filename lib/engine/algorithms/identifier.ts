/** Identifiers are random, so that no two calls use the same, and well below 2^53, so that every client reads them exactly. */
const CALLS = 2 ** 42;
const IDENTIFIERS_A_CALL = 512;

/** The first identifier of a call, for leases and holds; the call counts on from it. */
export function newIdentifier(): number {
  return Math.floor(Math.random() * CALLS) * IDENTIFIERS_A_CALL;
}
