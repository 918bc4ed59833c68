/** The names of attributes, after the semantic conventions of OpenTelemetry. */
export const attribute = {
  name: 'rate_limit.name',
  outcome: 'rate_limit.outcome',
  source: 'rate_limit.source',
  quota: 'rate_limit.quota',
  remaining: 'rate_limit.remaining',
  cost: 'rate_limit.cost',
  retryAfter: 'rate_limit.retry_after_ms',
  operation: 'rate_limit.operation',
  errorType: 'error.type',
} as const;
