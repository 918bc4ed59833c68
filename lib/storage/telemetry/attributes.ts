/** The names of attributes, following the semantic conventions of OpenTelemetry. */
export const attribute = {
  name: 'nestjs_sluice.limit',
  candidate: 'nestjs_sluice.candidate',
  outcome: 'nestjs_sluice.outcome',
  priority: 'nestjs_sluice.priority',
  source: 'nestjs_sluice.source',
  quota: 'nestjs_sluice.quota',
  remaining: 'nestjs_sluice.remaining',
  cost: 'nestjs_sluice.cost',
  retryAfter: 'nestjs_sluice.retry_after_ms',
  operation: 'nestjs_sluice.operation',
  errorType: 'error.type',
} as const;
