/** The parameters of a call that a middleware of the AI SDK gets, as far as they matter here. */
export interface ModelCall {
  /** The messages of the prompt. */
  readonly prompt: unknown;
  /** The tools that the model may call. */
  readonly tools?: unknown;
  /** The form of the response, such as a JSON schema. */
  readonly responseFormat?: unknown;
  /** The most tokens of the output. */
  readonly maxOutputTokens?: number | undefined;
  /** Aborts the call. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** The tokens of a call. */
export interface TokenUsage {
  /** Tokens of the prompt. */
  readonly inputTokens: number;
  /** Tokens that the model made, those of its reasoning included. */
  readonly outputTokens: number;
}

/** The tokens of a call that has ended, or is over for another reason. */
export interface UsedTokens extends TokenUsage {
  /** All of them: the model's own total, if it reports one that is higher than the sum. */
  readonly totalTokens: number;
}

/** A result as a whole. */
export interface ModelResult {
  /** What the model reports to have used. */
  readonly usage: unknown;
}

/** A result in parts. */
export interface ModelStream {
  /** The parts, as the model sends them. */
  readonly stream: ReadableStream<unknown>;
}

/**
 * A middleware for `wrapLanguageModel` of the AI SDK 5, 6 and 7. Its types name none of the SDK's, so that it goes with all of them.
 */
export interface LimitedModelMiddleware {
  /** Fits the version of every specification. */
  readonly specificationVersion: never;
  /** Bounds the output, if the call does not. */
  transformParams<P extends ModelCall>(call: { readonly params: P }): Promise<P>;
  /** Limits a call that returns its result as a whole. */
  wrapGenerate<R extends ModelResult>(call: {
    readonly doGenerate: () => PromiseLike<R>;
    readonly params: ModelCall;
  }): Promise<R>;
  /** Limits a call that streams its result. */
  wrapStream<R extends ModelStream>(call: {
    readonly doStream: () => PromiseLike<R>;
    readonly params: ModelCall;
  }): Promise<R>;
}
