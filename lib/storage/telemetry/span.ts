import type { Attributes, Span } from '@opentelemetry/api';
import { checkResultOf } from '../stores/store-decision.js';
import type { CheckEntry } from '../../engine/limits/counter.js';
import type { StoreDecision } from '../stores/store.js';
import type { UnnamedEvent } from './decision-event.js';

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

/** Records on a span how a check ended: attributes of the limit that binds most, and an event for each limit that matters. */
export function recordOnSpan(
  span: Span,
  entries: readonly CheckEntry[],
  decisions: readonly StoreDecision[],
  events: readonly UnnamedEvent[],
): void {
  // Candidates come after all limits of a check.
  const firstCandidate = entries.findIndex(({ limit }) => limit.isCandidate);
  const result = checkResultOf(firstCandidate < 0 ? decisions : decisions.slice(0, firstCandidate), entries);
  const { limit, outcome, source, quota, remaining } = events[result.decisions.indexOf(result.tightest)]!;
  span.setAttributes({
    [attribute.name]: limit,
    [attribute.outcome]: outcome,
    [attribute.source]: source,
    [attribute.quota]: quota,
    [attribute.remaining]: remaining,
  });
  for (const event of events) {
    if (event.outcome !== 'allowed') span.addEvent('nestjs_sluice.refused', attributesOf(event));
    if (event.nearLimit) span.addEvent('nestjs_sluice.near_limit', attributesOf(event));
  }
}

function attributesOf(event: UnnamedEvent): Attributes {
  const { limit, outcome, source, quota, remaining, cost, retryAfterMs, candidate } = event;
  const attributes: Attributes = {
    [attribute.name]: limit,
    [attribute.outcome]: outcome,
    [attribute.source]: source,
    [attribute.quota]: quota,
    [attribute.remaining]: remaining,
    [attribute.cost]: cost,
  };
  if (candidate === true) attributes[attribute.candidate] = true;
  // A request that can never fit has no wait, and exporters do not support infinity.
  if (outcome !== 'allowed' && retryAfterMs < Infinity) attributes[attribute.retryAfter] = retryAfterMs;
  return attributes;
}
