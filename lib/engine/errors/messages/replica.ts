/** The messages of limits whose units replicas confirm. */
export const replicaMessages = {
  unconfirmed: (confirmed: number, wanted: number, ms: number) =>
    `Redis has changed the counter, but only ${confirmed} of ${wanted} replicas confirmed that within ${ms} ms: a failover may lose it`,
  lagging: (reason: string) => `replicas lag: ${reason}; onStoreError decides what is not confirmed`,
  unasked: (ms: number) =>
    `Redis has changed the counter, but did not say within ${ms} ms how many replicas confirmed that: a failover may lose it`,
  notItsTurn: (ms: number) =>
    `Redis was not asked within ${ms} ms, as replicas have yet to confirm what was asked before: the counter is unchanged`,
} as const;
