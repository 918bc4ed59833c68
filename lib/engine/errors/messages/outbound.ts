import { show } from '../wording.js';

/** The messages of calls to others' APIs. */
export const outboundMessages = {
  learnedWithoutName: (location: string) => `${location}: option 'name' is missing, wants the name of what is learnt`,
  learnedIsDefined: (location: string, name: string) =>
    `${location}: the limit '${name}' is defined with a rate, wants its name '${name}', or another name for the limit that is learnt`,
  learnedWithoutLearn: (location: string, name: string) =>
    `${location}: the rate of the limit '${name}' is learnt, wants the option 'learn'`,
  learnsOther: (location: string, got: string, names: readonly string[]) =>
    `${location}: option 'learn' names the limit '${got}', wants names of the limits of the calls: ${names.map(show).join(', ')}`,
  wrongPriority: (location: string, got: unknown) =>
    `${location}: the function 'priority' gave ${show(got)}, wants a number`,
  noAxios: (got: unknown) =>
    `OutboundLimiter.axios: attach got ${show(got)}, wants an instance of axios such as httpService.axiosRef`,
  oldHandler: () =>
    'OutboundLimiter.dispatcher: got a request of another undici, wants requests of the undici that the dispatcher is of, from version 7 on',
  settleFailed: (location: string, limit: string) =>
    `${location}: the function 'settle' failed, so limit '${limit}' stays charged as before`,
  longRefusal: () => 'the rest of a refusal is not read, since the request is sent again',
  learningFailed: () => 'the limits that an upstream reported could not be learnt',
} as const;
