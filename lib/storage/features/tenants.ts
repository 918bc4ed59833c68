/** What one tenant has of the units now. */
export interface TenantNow {
  /** Its name, as Redis has it. */
  readonly id: string;
  readonly weight: number;
  /** The units that it may use in a span, whatever others do. */
  readonly part: number;
  /** The units that it used in the last span. */
  readonly used: number;
}

/** The active tenants of a counter. */
export interface TenantsNow {
  /** Those of whom most is expected by their weights, the busiest first; there may be more. */
  readonly tenants: readonly TenantNow[];
  /** The weights of all active tenants together. */
  readonly weights: number;
  /** The units that come back in a span, and those that each tenant may always use. */
  readonly units: number;
  readonly floor: number;
  /** The span, in milliseconds. */
  readonly spanMs: number;
}
