import { show } from '../../../engine/errors/wording.js';

/** The messages of limits whose units tenants share. */
export const shareMessages = {
  neverFound: (names: readonly string[], by: string) =>
    `names of tenants as '${by}' finds them, such as '${by}:${names[0]}'`,
  unlistedWants: () => "'each', or 'together' with an object 'weight' that names the other tenants",
  floorsTooMany: (tenants: number) => `a number of which ${tenants} tenants have at most 1 together`,
  wrongWeight: (limit: string, tenant: string, got: unknown) =>
    `the weight of tenant ${show(tenant)} for limit '${limit}' is ${show(got)}, wants a whole number >= 1 and <= 1000000`,
  wrongTenant: (got: unknown) => `share is ${show(got)}, wants the tenant: a string that is not empty`,
  noTenant: (limit: string) => `limit '${limit}' shares its units among tenants, wants { share: 'the tenant' }`,
  noTenantHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' shares its units among tenants, wants a limit without 'share': nothing says here whose they are`,
  notReservable: (limit: string) =>
    `limit '${limit}' has the option 'share', so its units cannot be reserved, wants 'consume' or 'acquire' instead`,
} as const;
