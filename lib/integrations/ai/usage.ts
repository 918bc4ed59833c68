import type { TokenUsage, UsedTokens } from './model-types.js';

/** Tokens as AI SDK 5 reports them; since version 6 with a `total` of each kind. */
interface ReportedUsage {
  readonly inputTokens?: number | { readonly total?: number };
  readonly outputTokens?: number | { readonly total?: number };
  readonly totalTokens?: number;
}

/** Reads the usage that a model reports. Values that it doesn't report are taken from the reservation. */
export function usedTokens(reported: unknown, reserved: TokenUsage): UsedTokens {
  const { inputTokens, outputTokens, totalTokens } = (reported ?? {}) as ReportedUsage;
  const used = withTotal({
    inputTokens: countOf(inputTokens) ?? reserved.inputTokens,
    outputTokens: countOf(outputTokens) ?? reserved.outputTokens,
  });
  return { ...used, totalTokens: Math.max(used.totalTokens, countOf(totalTokens) ?? 0) };
}

export function withTotal({ inputTokens, outputTokens }: TokenUsage): UsedTokens {
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

function countOf(reported: unknown): number | undefined {
  const count: unknown =
    typeof reported === 'object' && reported !== null ? (reported as { total?: unknown }).total : reported;
  return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? Math.ceil(count) : undefined;
}
