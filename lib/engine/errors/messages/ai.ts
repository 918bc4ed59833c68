import { show } from '../wording.js';

/** The messages of calls of language models. */
export const aiMessages = {
  noService: (got: unknown) => `limitModel: option 'limiters' is ${show(got)}, wants the LimiterService of the app`,
  noLimits: (got: unknown) =>
    `limitModel: option 'limits' is ${show(got)}, wants a list of at least one { limit, key?, units? }`,
  wrongOption: (option: string, got: unknown, wants: string) =>
    `limitModel: option '${option}' is ${show(got)}, wants ${wants}`,
  wrongKey: (limit: string, got: unknown) =>
    `limitModel: the key of limit '${limit}' is ${show(got)}, wants a string that is not empty`,
  noOutputLimit: () =>
    "limitModel: nothing bounds the output of the call, so it cannot be reserved; wants the option 'maxOutputTokens', that of the call, or 'estimate'",
  fileInPrompt: () =>
    "limitModel: the prompt has a file, and how many tokens it costs is not known; wants the option 'estimate'",
  wrongEstimate: (got: unknown) =>
    `limitModel: 'estimate' returned ${show(got)}, wants { inputTokens, outputTokens }, whole numbers >= 0`,
  notSettled: (error: unknown) =>
    `limitModel: the units of a call could not be settled, so they lapse as 'onLapse' says: ${error instanceof Error ? error.message : show(error)}`,
} as const;
