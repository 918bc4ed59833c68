import { RateLimitArgumentError } from '../../engine/errors/errors.js';
import { aiMessages } from '../../engine/errors/messages/ai.js';
import type { ModelCall, TokenUsage } from './model-types.js';

/**
 * The most tokens that a call can use. No token is shorter than a byte, so the prompt has no more tokens than its JSON has bytes. Throws
 * `RateLimitArgumentError` for prompts with files, and if nothing bounds the output.
 */
export function mostTokens({ prompt, tools, responseFormat, maxOutputTokens }: ModelCall): TokenUsage {
  if (maxOutputTokens === undefined) throw new RateLimitArgumentError(aiMessages.noOutputLimit());
  const text = JSON.stringify([prompt, tools, responseFormat], (_, value: unknown) => {
    if (isFile(value)) throw new RateLimitArgumentError(aiMessages.fileInPrompt());
    return value;
  });
  return { inputTokens: Buffer.byteLength(text), outputTokens: maxOutputTokens };
}

/** Checks what `estimate` returned. Throws `RateLimitArgumentError`. */
export function assertEstimate(estimate: unknown): asserts estimate is TokenUsage {
  const { inputTokens, outputTokens } = (estimate ?? {}) as Partial<TokenUsage>;
  if ([inputTokens, outputTokens].every((count) => Number.isSafeInteger(count) && count! >= 0)) return;
  throw new RateLimitArgumentError(aiMessages.wrongEstimate(estimate));
}

function isFile(value: unknown): boolean {
  const { type, data, mediaType } = (value ?? {}) as { type?: unknown; data?: unknown; mediaType?: unknown };
  return value instanceof Uint8Array || (type === 'file' && (data !== undefined || mediaType !== undefined));
}
