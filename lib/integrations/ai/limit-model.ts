import { RateLimitExceededException } from '../../app/http/rate-limit.exceptions.js';
import type { ReservedCheck } from '../../app/limiter/reservation.js';
import { argumentError, RateLimitArgumentError, RateLimitConfigError } from '../../engine/errors/errors.js';
import { logger } from '../../engine/errors/logger.js';
import { aiMessages } from '../../engine/errors/messages/ai.js';
import { checkValue, wholeNumber } from '../../engine/options/check-options.js';
import { callableOrClass } from '../../engine/options/kinds.js';
import type { LimiterService } from '../../nest/limiter.service.js';
import type { LimitedModelMiddleware, ModelCall, TokenUsage, UsedTokens } from './model-types.js';

/**
 * The maximum number of tokens that a call can use. A token is at least one byte, so a prompt has at most as many tokens as its JSON has
 * bytes. Throws `RateLimitArgumentError` if the prompt has files or if the output has no maximum.
 */
function mostTokens({ prompt, tools, responseFormat, maxOutputTokens }: ModelCall): TokenUsage {
  if (maxOutputTokens === undefined) throw new RateLimitArgumentError(aiMessages.noOutputLimit());
  const text = JSON.stringify([prompt, tools, responseFormat], (_, value: unknown) => {
    if (isFile(value)) throw new RateLimitArgumentError(aiMessages.fileInPrompt());
    return value;
  });
  return { inputTokens: Buffer.byteLength(text), outputTokens: maxOutputTokens };
}

/** Checks what `estimate` returned. Throws `RateLimitArgumentError`. */
function assertEstimate(estimate: unknown): asserts estimate is TokenUsage {
  const { inputTokens, outputTokens } = (estimate ?? {}) as Partial<TokenUsage>;
  if ([inputTokens, outputTokens].every((count) => Number.isSafeInteger(count) && count! >= 0)) return;
  throw argumentError('SLUICE_INVALID_RESULT', aiMessages.wrongEstimate(estimate));
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

/** Returns true if the result of a tool has images or files. Their types differ between versions of the AI SDK; some are references. */
function holdsFiles(output: unknown): boolean {
  const { type, value } = (output ?? {}) as { readonly type?: unknown; readonly value?: unknown };
  if (type !== 'content' || !Array.isArray(value)) return false;
  return (value as readonly (Part | null | undefined)[]).some((part) => !NO_FILES.includes(part?.type));
}

/** A limit on the calls of a model. */
export interface ModelLimit {
  /** The name of a limit that the app defines. Windows with `hold` and budgets count the actual usage. */
  readonly limit: string;
  /**
   * The key that the calls count for.
   * @default 'global'
   */
  readonly key?: string;
  /**
   * Converts tokens to units of the limit: a whole number >= 0. Called with the estimate before the call and with the actual usage after
   * it.
   * @default all tokens
   */
  readonly units?: (tokens: UsedTokens) => number;
}

/** How the calls of a model are limited. */
export interface LimitModelOptions {
  /** The limits. One check reserves units of all of them, or of none. */
  readonly limits: readonly ModelLimit[];
  /**
   * The maximum number of output tokens for calls that don't set their own: a whole number >= 1. It is passed to the model.
   * @default none: each call has to set it, or `estimate` has to limit it
   */
  readonly maxOutputTokens?: number;
  /**
   * Estimates the maximum number of tokens of a call from its prompt. Usage above the estimate is charged, even beyond the limit.
   * @default the bytes of its prompt as JSON, and its `maxOutputTokens`
   */
  readonly estimate?: (call: ModelCall) => TokenUsage | Promise<TokenUsage>;
}

/**
 * Makes a middleware for `wrapLanguageModel` of the AI SDK. Before each call of the model it reserves an estimate of the units from all
 * limits; after the call it settles them by the tokens used. If a limit has no room, the call rejects with `RateLimitExceededException`,
 * and the model is not called. Throws `RateLimitConfigError`.
 *
 * @param limiters the `LimiterService` of the app
 * @example
 * ```ts
 * const model = wrapLanguageModel({
 *   model: openai('gpt-5'),
 *   middleware: limitModel(limiters, { limits: [{ limit: 'tokens', key: `org:${org}` }], maxOutputTokens: 2_000 }),
 * });
 * ```
 */
export function limitModel(limiters: LimiterService, options: LimitModelOptions): LimitedModelMiddleware {
  checkOptions(limiters, options);
  const { limits, maxOutputTokens, estimate = mostTokens } = options;
  const unitsOf = (tokens: UsedTokens) => limits.map(({ units }) => units?.(tokens) ?? tokens.totalTokens);

  /** Reserves units before the model is called. Rejects if a limit rejects. */
  async function reserve(call: ModelCall): Promise<ReservedCall> {
    call.abortSignal?.throwIfAborted();
    const estimated = await estimate(call);
    assertEstimate(estimated);
    const units = unitsOf(withTotal(estimated));
    const held = await limiters.reserve(
      limits.map(({ limit, key = 'global' }, i) => ({ limit, key, cost: units[i]! })),
    );
    if (!held.allowed) throw new RateLimitExceededException(held);
    return { held, units, estimated };
  }

  return {
    // Each version of the SDK has its own version here, and none of them reads it.
    specificationVersion: 'v3' as never,

    async transformParams({ params }) {
      const keepsParams = maxOutputTokens === undefined || params.maxOutputTokens !== undefined;
      return keepsParams ? params : { ...params, maxOutputTokens };
    },

    async wrapGenerate({ doGenerate, params }) {
      const reserved = await reserve(params);
      const result = await calling(doGenerate, reserved, params.abortSignal);
      await ending(() => reserved.held.settle(unitsOf(usedTokens(result.usage, reserved.estimated))));
      return result;
    },

    async wrapStream({ doStream, params }) {
      const reserved = await reserve(params);
      const result = await calling(doStream, reserved, params.abortSignal);
      const settle = (used: UsedTokens) => ending(() => reserved.held.settle(unitsOf(used)));
      return { ...result, stream: countedStream(result.stream, reserved.estimated, params.abortSignal, settle) };
    },
  };
}

interface ReservedCall {
  readonly held: ReservedCheck;
  readonly units: readonly number[];
  readonly estimated: TokenUsage;
}

/** Calls the model. A failed call is refunded. An aborted call may have reached the model, so it costs its estimate. */
async function calling<R>(call: () => PromiseLike<R>, { held, units }: ReservedCall, signal?: AbortSignal): Promise<R> {
  try {
    return await call();
  } catch (error) {
    await ending(() => (signal?.aborted === true ? held.settle(units) : held.cancel()));
    throw error;
  }
}

/** Settles the units of a call. A failure is only logged, since the call itself has already ended. */
async function ending(settle: () => Promise<void>): Promise<void> {
  try {
    await settle();
  } catch (error) {
    logger.warn(aiMessages.notSettled(error));
  }
}

const LOCATION = 'limitModel';

function checkOptions(limiters: unknown, options: LimitModelOptions): void {
  const service = limiters as Partial<LimiterService> | undefined;
  if (typeof service?.reserve !== 'function' || typeof service.for !== 'function')
    refuse(aiMessages.noService(limiters));
  const { limits, maxOutputTokens, estimate } = (options ?? {}) as Partial<LimitModelOptions>;
  if (!Array.isArray(limits) || limits.length === 0) refuse(aiMessages.noLimits(limits));
  for (const { limit, key, units } of limits as readonly ModelLimit[]) {
    // Throws if a limit isn't defined.
    service.for(limit);
    if (key !== undefined && (typeof key !== 'string' || key === '')) refuse(aiMessages.wrongKey(limit, key));
    if (units !== undefined) checkValue(LOCATION, 'units', units, callableOrClass('a function of the tokens'));
  }
  if (maxOutputTokens !== undefined) wholeNumber(LOCATION, 'maxOutputTokens', maxOutputTokens);
  if (estimate !== undefined) checkValue(LOCATION, 'estimate', estimate, callableOrClass('a function of the call'));
}

function refuse(message: string): never {
  throw new RateLimitConfigError(message);
}

/** A part of a model's stream. Only the fields used here. */
interface StreamPart {
  readonly type?: string;
  readonly id?: unknown;
  readonly delta?: unknown;
  readonly toolCallId?: unknown;
  readonly input?: unknown;
  readonly usage?: unknown;
}

/**
 * Passes the parts of a model's stream on, and settles its call once: by the usage in its last part, before passing that part on. If the
 * stream fails, ends without such a part, is aborted or cancelled, it settles by the reserved input and the bytes that the model has sent
 * so far.
 */
function countedStream(
  stream: ReadableStream<unknown>,
  reserved: TokenUsage,
  signal: AbortSignal | undefined,
  settle: (used: UsedTokens) => Promise<void>,
): ReadableStream<unknown> {
  const reader = stream.getReader();
  let sentBytes = 0;
  /** The tool calls whose input came as deltas. */
  const streamed = new Set<unknown>();
  let settled: Promise<void> | undefined;
  const end = (used: UsedTokens) => {
    signal?.removeEventListener('abort', onAbort);
    return (settled ??= settle(used));
  };
  const endEarly = () =>
    end(withTotal({ inputTokens: reserved.inputTokens, outputTokens: Math.min(sentBytes, reserved.outputTokens) }));
  const onAbort = () => void endEarly();
  // A model may begin its stream although the call was aborted while it was being made.
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener('abort', onAbort);
  return new ReadableStream<unknown>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            await endEarly();
            controller.close();
            return;
          }
          const { type, id, delta, toolCallId, input, usage } = (value ?? {}) as StreamPart;
          // Texts, reasoning and, from most models, tool inputs arrive as deltas.
          if (typeof delta === 'string') {
            sentBytes += Buffer.byteLength(delta);
            if (type === 'tool-input-delta') streamed.add(id);
          }
          if (type === 'tool-call' && typeof input === 'string' && !streamed.has(toolCallId)) {
            sentBytes += Buffer.byteLength(input);
          }
          if (type === 'finish') await end(usedTokens(usage, reserved));
          controller.enqueue(value);
        } catch (error) {
          await endEarly();
          controller.error(error);
        }
      },
      async cancel(reason) {
        await Promise.all([endEarly(), reader.cancel(reason)]);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Tokens as AI SDK 5 reports them; since version 6 with a `total` of each kind. */
interface ReportedUsage {
  readonly inputTokens?: number | { readonly total?: number };
  readonly outputTokens?: number | { readonly total?: number };
  readonly totalTokens?: number;
}

/** Reads the usage that a model reports. Values that it doesn't report are taken from the reservation. */
function usedTokens(reported: unknown, reserved: TokenUsage): UsedTokens {
  const { inputTokens, outputTokens, totalTokens } = (reported ?? {}) as ReportedUsage;
  const used = withTotal({
    inputTokens: countOf(inputTokens) ?? reserved.inputTokens,
    outputTokens: countOf(outputTokens) ?? reserved.outputTokens,
  });
  return { ...used, totalTokens: Math.max(used.totalTokens, countOf(totalTokens) ?? 0) };
}

function withTotal({ inputTokens, outputTokens }: TokenUsage): UsedTokens {
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

function countOf(reported: unknown): number | undefined {
  const count: unknown =
    typeof reported === 'object' && reported !== null ? (reported as { total?: unknown }).total : reported;
  return typeof count === 'number' && Number.isFinite(count) && count >= 0 ? Math.ceil(count) : undefined;
}
