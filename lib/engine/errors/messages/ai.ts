import { show, wrongInput } from '../wording.js';

/** The messages of language model calls. */
export const aiMessages = {
  noService: (received: unknown) => wrongInput('limitModel.limiters', 'the LimiterService of the app', received),
  noLimits: (received: unknown) =>
    wrongInput('limitModel.limits', 'a list of at least one { limit, key?, units? }', received),
  wrongKey: (limit: string, received: unknown) =>
    wrongInput(`limitModel: key of limit '${limit}'`, 'a string that is not empty', received),
  noOutputLimit: () =>
    "limitModel: nothing bounds the output of the call, so it cannot be reserved. Set 'maxOutputTokens' here or in the call, or pass 'estimate'",
  fileInPrompt: () =>
    "limitModel: the prompt contains a file, and its cost in tokens is unknown. Pass the option 'estimate'",
  wrongEstimate: (received: unknown) =>
    wrongInput('limitModel.estimate', 'it to return { inputTokens, outputTokens }, whole numbers >= 0', received),
  notSettled: (error: unknown) =>
    `limitModel: the units of a call could not be settled, so they expire as 'onLapse' defines: ${error instanceof Error ? error.message : show(error)}`,
} as const;
