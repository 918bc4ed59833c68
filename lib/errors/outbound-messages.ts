import { show } from './messages.js';

/** The messages of calls to others' APIs. */
export const outboundMessages = {
  wrongPriority: (location: string, got: unknown) =>
    `${location}: the function 'priority' gave ${show(got)}, wants a number`,
  noAxios: (got: unknown) =>
    `LimiterService.axios: attach got ${show(got)}, wants an instance of axios such as httpService.axiosRef`,
  settleFailed: (location: string, limit: string) =>
    `${location}: the function 'settle' failed, so limit '${limit}' stays charged as before`,
  learningFailed: () => 'what an upstream said of its limits could not be learnt',
} as const;
