import { listOf, missingInput, show, wrongInput } from '../wording.js';

/** The messages of outgoing API calls. */
export const outboundMessages = {
  learnedWithoutName: (location: string) => missingInput(`${location}.name`, 'the name of the learned limit'),
  learnedIsDefined: (location: string, name: string) =>
    `${location}: the limit '${name}' is defined with a rate. Use its name '${name}', or give the learned limit another name`,
  learnedWithoutLearn: (location: string, name: string) =>
    `${location}: the rate of the limit '${name}' is learned, which needs the option 'learn'`,
  learnsOther: (location: string, received: string, names: readonly string[]) =>
    `${location}.learn: expected names of the limits of the calls, ${listOf(names.map(show), 'or')}, received '${received}'`,
  wrongPriority: (location: string, received: unknown) =>
    wrongInput(`${location}.priority`, 'the function to return a number', received),
  noAxios: (received: unknown) =>
    wrongInput('OutboundLimiter.axios.attach', 'an instance of axios such as httpService.axiosRef', received),
  oldHandler: () =>
    'OutboundLimiter.dispatcher: expected requests of the same undici as the dispatcher, from version 7 on, received one of another undici',
  settleFailed: (location: string, limit: string) =>
    `${location}: the function 'settle' failed, so limit '${limit}' keeps its original charge`,
  longRefusal: () => 'the rest of a rejection is not read, since the request is sent again',
  learningFailed: () => 'the limits that an upstream reported could not be learned',
} as const;
