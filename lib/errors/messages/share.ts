import { listOf, show } from '../wording.js';

/** The messages of limits whose units tenants share. */
export const shareMessages = {
  wants: () => "{ by, weight?, unlisted?, floor? } such as { by: 'header:x-tenant', floor: 0.05 }",
  weightWants: () => 'a function of the tenant, or an object of whole numbers >= 1 and <= 1000000 by tenant',
  neverFound: (names: readonly string[], by: string) =>
    `names of tenants as '${by}' finds them, such as '${by}:${names[0]}'`,
  unlistedWants: () => "'each', or 'together' with an object 'weight' that names the other tenants",
  floorWants: () => 'a number >= 0 and <= 1',
  floorsTooMany: (tenants: number) => `a number of which ${tenants} tenants have at most 1 together`,
  notShareable: (location: string, algo: string, able: readonly string[]) =>
    `${location}: units of ${algo} cannot be shared, wants 'share' with ${listOf(able, 'or')}`,
  shareWith: (location: string, other: string) =>
    `${location}: options 'share' and '${other}' exclude each other, wants one of them`,
  wrongWeight: (limit: string, tenant: string, got: unknown) =>
    `the weight of tenant ${show(tenant)} for limit '${limit}' is ${show(got)}, wants a whole number >= 1 and <= 1000000`,
  wrongTenant: (got: unknown) => `share is ${show(got)}, wants the tenant: a string that is not empty`,
  notOfTenant: (got: unknown) => `the options are ${show(got)}, wants { share }, { within } or nothing`,
  noTenant: (limit: string) => `limit '${limit}' shares its units among tenants, wants { share: 'the tenant' }`,
  noTenantHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' shares its units among tenants, wants a limit without 'share': nothing says here whose they are`,
  notReservable: (limit: string) =>
    `limit '${limit}' has the option 'share', so its units cannot be reserved, wants 'consume' or 'acquire' instead`,
  notShared: (limit: string) => `limit '${limit}' got a share, wants none: it has no option 'share'`,
} as const;
