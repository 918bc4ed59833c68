import { usedTokens, withTotal } from './usage.js';
import type { TokenUsage, UsedTokens } from './model-types.js';

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
export function countedStream(
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
  signal?.addEventListener('abort', onAbort);
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
