/** Identifiers are random, so that two calls never use the same, and well below 2^53, where every client reads them exactly. */
const CALLS = 2 ** 42;
const IDENTIFIERS_A_CALL = 512;

/** The first identifier of a call, which counts on from it: of leases and of holds. */
export function newIdentifier(): number {
  return Math.floor(Math.random() * CALLS) * IDENTIFIERS_A_CALL;
}
