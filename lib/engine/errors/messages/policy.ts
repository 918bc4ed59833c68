import { listOf, show, wrongInput } from '../wording.js';
import { optionMessages } from './options.js';

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`);

/** The messages of policies: their errors, and changes of their versions. */
export const policyMessages = {
  wrongValue: (shown: string, expected: string) => `expected ${expected}, received ${shown}`,
  missing: (expected: string) => `missing, expected ${expected}`,
  impossibleKey: (expected: string) => `expected ${expected}, received a key that the limit never uses`,
  unknown: (name: string, known: readonly string[]) => optionMessages.unknown(name, known),
  noCommonAlgorithm: (options: readonly string[]) =>
    `no algorithm has all of the options ${listOf(quoted(options), 'and')}. Use the options of one algorithm`,
  twice: (name: string) => `${show(name)} appears twice. Keep one`,
  onBothLists: (other: string) => `the same entry is also in ${other}. Keep it on one of the lists`,
  nothingSaid: (known: readonly string[]) =>
    `it is empty, expected at least one ${known.length > 12 ? 'option' : `of ${known.join(', ')}`}`,
  notYaml: (reason: string) => `it is not YAML: ${reason}`,
  notJson: (reason: string) => `it is not JSON: ${reason}`,
  tooDeep: (most: number) => `it is nested more than ${most} levels deep`,
  notText: () => 'it is not UTF-8 text',
  tooLarge: (most: number) => `it has more than ${most} bytes`,
  empty: () => "it is empty, expected an object of 'limits', 'overrides' and 'lists'",
  noAnchors: () => 'anchors and aliases are not supported. Write the value itself',
  noTags: (tag: string) => `the tag ${show(tag)} is not supported. Write plain values`,
  wrongName: () => 'expected a text as a name, in quotes if it looks like a number',
  elsewhere: () => 'it points to another folder than before. Keep it in its own folder or in that of the start',
  unreadable: (reason: string) => `it cannot be read: ${reason}`,
  failed: (reason: string) => `the function failed: ${reason}`,
  timedOut: (timeoutMs: number) => `it returned nothing within ${timeoutMs} ms`,
  unknownLimit: (name: string, known: readonly string[]) =>
    `unknown limit ${show(name)}, expected a limit of 'define', 'forFeature' or 'limits', or, in the policy's 'limits', an 'algo': ` +
    (known.length > 0 ? quoted(known).join(', ') : 'there is none'),
  needsRestart: (option: string, received: unknown, running: unknown) =>
    `option '${option}' would change from ${show(running)} to ${show(received)}, which needs a restart: it cannot change while the app runs`,
  goneLimit: (name: string) =>
    `limit ${show(name)} is gone, which needs a restart: a limit that only the policy defines cannot be removed while the app runs`,
  refused: (lines: readonly string[]) =>
    lines.length === 1 ? lines[0]! : `the policy has ${lines.length} problems:\n  ${lines.join('\n  ')}`,
  notTaken: (lines: readonly string[]) =>
    `the changed policy is rejected, and the last valid one stays in effect: ${policyMessages.refused(lines)}`,
  taken: (name: string) => `the policy ${name} has changed, and is now in effect`,
  asBefore: (name: string) => `the policy ${name} is again the same as the one in effect`,
  sourceExpected: () => 'the path of a .yaml, .yml or .json file, or a function that returns an object',
  everyWithoutWatch: (received: unknown) =>
    `${wrongInput('RateLimitModule.policy.every', 'no value', received)}: it needs 'watch: true'`,
  everyExpected: () => 'at least 10 ms and at most 1 day',
  timeoutExpected: () => 'at most 1 hour',
} as const;
