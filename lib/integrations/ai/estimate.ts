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

/** Parts that are files, wherever they appear. */
const FILES: readonly unknown[] = ['file', 'reasoning-file'];
/** Parts of a tool's result that aren't files: their cost is in the prompt. */
const NO_FILES: readonly unknown[] = ['text', 'custom'];

/** A part of a prompt, or anything else in it. */
interface Part {
  readonly type?: unknown;
  readonly data?: unknown;
  readonly mediaType?: unknown;
  readonly output?: unknown;
}

function isFile(value: unknown): boolean {
  if (value instanceof Uint8Array) return true;
  const { type, data, mediaType, output } = (value ?? {}) as Part;
  if (FILES.includes(type)) return data !== undefined || mediaType !== undefined;
  return type === 'tool-result' && holdsFiles(output);
}

/** True if the result of a tool has images or files. Their types differ between versions of the AI SDK; some are only references. */
function holdsFiles(output: unknown): boolean {
  const { type, value } = (output ?? {}) as { readonly type?: unknown; readonly value?: unknown };
  if (type !== 'content' || !Array.isArray(value)) return false;
  return (value as readonly (Part | null | undefined)[]).some((part) => !NO_FILES.includes(part?.type));
}
