import { wrongInput } from '../../../engine/errors/wording.js';

/** The messages of limits whose units tenants share. */
export const shareMessages = {
  neverFound: (names: readonly string[], by: string) =>
    `names of tenants as '${by}' finds them, such as '${by}:${names[0]}'`,
  unlistedExpected: () => "'each', or 'together' with an object 'weight' that names the other tenants",
  floorsTooMany: (tenants: number) => `a number of which ${tenants} tenants have at most 1 together`,
  wrongWeight: (limit: string, tenant: string, received: unknown) =>
    wrongInput(`weight of tenant '${tenant}' for limit '${limit}'`, 'a whole number >= 1 and <= 1000000', received),
  wrongTenant: (received: unknown) => wrongInput('share', 'the tenant, a string that is not empty', received),
  noTenant: (limit: string) => `limit '${limit}' shares its units among tenants: expected { share: 'the tenant' }`,
  noTenantHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' shares its units among tenants, and the tenant is unknown here. Use a limit without 'share'`,
  notReservable: (limit: string) =>
    `limit '${limit}' has the option 'share', so its units cannot be reserved. Use 'consume' or 'acquire' instead`,
} as const;
