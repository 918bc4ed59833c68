import { listOf, show } from '../wording.js';
import { optionMessages } from './options.js';

const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`);

/** The messages of policies: what is wrong in one, and what happens to its versions. */
export const policyMessages = {
  wrongValue: (shown: string, wants: string) => `got ${shown}, wants ${wants}`,
  impossibleKey: (wants: string) => `a key that the limit never counts by, wants ${wants}`,
  unknown: (name: string, known: readonly string[]) => `${show(name)} ${optionMessages.unknown(name, known)}`,
  noCommonAlgorithm: (options: readonly string[]) =>
    `no algorithm has all of the options ${listOf(quoted(options), 'and')}, wants those of one`,
  twice: (name: string) => `${show(name)} stands here twice, wants it once`,
  onBothLists: (other: string) => `the same entry is in ${other}, too, wants it on one of the lists`,
  nothingSaid: (wants: string) => `it says nothing, wants at least one of ${wants}`,
  notYaml: (reason: string) => `it is not YAML: ${reason}`,
  notJson: (reason: string) => `it is not JSON: ${reason}`,
  tooDeep: (most: number) => `it is nested more than ${most} levels deep`,
  notText: () => 'it is not UTF-8 text',
  tooLarge: (most: number) => `it has more than ${most} bytes`,
  empty: () => "it is empty, wants an object of 'limits', 'overrides' and 'lists'",
  noAnchors: () => 'anchors and aliases are not read, wants the value itself',
  noTags: (tag: string) => `the tag ${show(tag)} is not read, wants plain values`,
  wrongName: () => 'wants a text as a name, in quotes if it looks like a number',
  elsewhere: () => 'it leads to another folder than before, wants it in its own or where it stood at the start',
  unreadable: (reason: string) => `it cannot be read: ${reason}`,
  failed: (reason: string) => `the function failed: ${reason}`,
  timedOut: (timeoutMs: number) => `it gave nothing within ${timeoutMs} ms`,
  unknownLimit: (name: string, known: readonly string[]) =>
    `no limit of 'define', 'forFeature' or 'limits' is named ${show(name)}, wants one of these or, among 'limits', an 'algo': ` +
    (known.length > 0 ? quoted(known).join(', ') : 'there is none'),
  needsRestart: (option: string, got: unknown, running: unknown) =>
    `option '${option}' would be ${show(got)} and is ${show(running)}, wants a restart: it does not change while the app runs`,
  goneLimit: (name: string) =>
    `limit ${show(name)} is gone, wants a restart: one that only the policy defines stays while the app runs`,
  refused: (lines: readonly string[]) =>
    lines.length === 1 ? lines[0]! : `the policy has ${lines.length} problems:\n  ${lines.join('\n  ')}`,
  notTaken: (lines: readonly string[]) =>
    `the policy has changed and is not taken, and the last good one holds: ${policyMessages.refused(lines)}`,
  taken: (name: string) => `the policy ${name} has changed, and holds from now on`,
  asBefore: (name: string) => `the policy ${name} is again as the one that holds`,
  sourceWants: () => 'the path of a .yaml, .yml or .json file, or a function that gives an object',
  everyWithoutWatch: () => "nothing without 'watch: true'",
  everyWants: () => 'at least 10 ms and at most 1 day',
  timeoutWants: () => 'at most 1 hour',
} as const;
