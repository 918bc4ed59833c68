/** The messages of limits whose charges replicas confirm. */
export const replicaMessages = {
  unconfirmed: (confirmed: number, wanted: number, ms: number) =>
    `Redis has changed the counter, but only ${confirmed} of ${wanted} replicas confirmed that within ${ms} ms: a failover may lose it`,
  lagging: (reason: string) => `replicas lag: ${reason}; onStoreError decides unconfirmed requests`,
  unasked: (ms: number) =>
    `Redis has changed the counter, but did not report within ${ms} ms how many replicas confirmed that: a failover may lose it`,
  notItsTurn: (ms: number) =>
    `no request was sent to Redis within ${ms} ms, since replicas have not yet confirmed earlier ones: the counter is unchanged`,
} as const;
