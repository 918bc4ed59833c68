/** The current share of one tenant. */
export interface TenantNow {
  /** Its name as stored on Redis. */
  readonly id: string;
  readonly weight: number;
  /** The units that it may use in a span, regardless of others. */
  readonly part: number;
  /** The units that it used in the last span. */
  readonly used: number;
}

/** The active tenants of a counter. */
export interface TenantsNow {
  /** The tenants with the highest expected use by weight, the busiest first. There may be more tenants. */
  readonly tenants: readonly TenantNow[];
  /** The sum of the weights of all active tenants. */
  readonly weights: number;
  /** The units that come back in a span, and those that each tenant may always use. */
  readonly units: number;
  readonly floor: number;
  /** The span, in milliseconds. */
  readonly spanMs: number;
}
