/** Units that a counter counts until whoever holds them is done, or they lapse. */
export interface HeldNow {
  /** How many leases or reservations hold them. */
  readonly count: number;
  /** The units that these hold together; absent if there are too many to add up. */
  readonly units?: number;
  /** Milliseconds until the first of them lapses, unless it is renewed, released or settled before; absent if there are none. */
  readonly firstLapseMs?: number;
  /** Milliseconds until the last of them lapses; absent if there are none, or too many to add up. */
  readonly lastLapseMs?: number;
}
