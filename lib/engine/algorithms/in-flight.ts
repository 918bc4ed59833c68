/** A request that was let in. Times are microseconds. */
export interface Flight {
  readonly units: number;
  readonly since: number;
  /** The delay of the event loop when the request arrived. */
  readonly delay: number;
}

/** The requests in flight, the oldest first. */
export class InFlight {
  private readonly flights = new Map<number, Flight>();
  /** Their units. */
  units = 0;

  get count(): number {
    return this.flights.size;
  }

  /** The time at which the last of them began. */
  last: number | undefined;

  add(ticket: number, flight: Flight): void {
    this.flights.set(ticket, flight);
    this.units += flight.units;
    this.last = flight.since;
  }

  /** Removes a request if it is still in flight. */
  remove(ticket: number): Flight | undefined {
    const flight = this.flights.get(ticket);
    if (flight === undefined) return undefined;
    this.flights.delete(ticket);
    this.units -= flight.units;
    return flight;
  }

  /** Removes requests that began before a time. */
  dropBefore(time: number): void {
    for (const [ticket, { since }] of this.flights) {
      if (since >= time) return;
      this.remove(ticket);
    }
  }

  /** Restarts all requests after the clock was set back: they count from now on, and their latency is unknown. */
  restart(now: number): void {
    for (const [ticket, flight] of this.flights) this.flights.set(ticket, { ...flight, since: now, delay: NaN });
    if (this.last !== undefined) this.last = now;
  }
}
