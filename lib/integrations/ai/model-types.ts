/** The parameters of a call that the AI SDK passes to a middleware, as far as limits need them. */
export interface ModelCall {
  /** The messages of the prompt. */
  readonly prompt: unknown;
  /** The tools that the model may call. */
  readonly tools?: unknown;
  /** The form of the response, such as a JSON schema. */
  readonly responseFormat?: unknown;
  /** The maximum number of output tokens. */
  readonly maxOutputTokens?: number | undefined;
  /** Aborts the call. */
  readonly abortSignal?: AbortSignal | undefined;
}

/** The tokens of a call. */
export interface TokenUsage {
  /** Tokens of the prompt. */
  readonly inputTokens: number;
  /** Tokens that the model generated, including its reasoning. */
  readonly outputTokens: number;
}

/** The tokens of a call that has ended or failed. */
export interface UsedTokens extends TokenUsage {
  /** The total that the model reports, or the sum of the other two if that is higher. */
  readonly totalTokens: number;
}

/** A complete result. */
export interface ModelResult {
  /** The usage that the model reports. */
  readonly usage: unknown;
}

/** A streamed result. */
export interface ModelStream {
  /** The parts, as the model sends them. */
  readonly stream: ReadableStream<unknown>;
}

/**
 * A middleware for `wrapLanguageModel` of the AI SDK 5, 6 and 7. It works with all of them because it uses none of the SDK's types.
 */
export interface LimitedModelMiddleware {
  /** Fits the version of every specification. */
  readonly specificationVersion: never;
  /** Sets the maximum number of output tokens if the call doesn't. */
  transformParams<P extends ModelCall>(call: { readonly params: P }): Promise<P>;
  /** Limits a call that returns a complete result. */
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
