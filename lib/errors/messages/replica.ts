/** The messages of limits whose units replicas confirm. */
export const replicaMessages = {
  wants: () => 'a whole number from 1 to 100',
  replicasWith: (location: string, other: string) =>
    `${location}: options 'replicas' and ${other} exclude each other, wants one of them`,
  unconfirmed: (confirmed: number, wanted: number, ms: number) =>
    `Redis has changed the counter, but only ${confirmed} of ${wanted} replicas confirmed that within ${ms} ms: a failover may lose it`,
  lagging: (reason: string) => `replicas lag: ${reason}; onStoreError decides what is not confirmed`,
  unasked: (ms: number) =>
    `Redis has changed the counter, but did not say within ${ms} ms how many replicas confirmed that: a failover may lose it`,
} as const;
