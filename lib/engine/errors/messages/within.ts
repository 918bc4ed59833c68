import { listOf, show } from '../wording.js';
import { meant } from './options.js';

const quoted = (names: readonly string[], conjunction: 'and' | 'or' = 'and') =>
  listOf(
    names.map((name) => `'${name}'`),
    conjunction,
  );

const example = (missing: readonly string[]) =>
  `{ within: { ${missing.map((name) => `${/^[a-z_$][\w$]*$/i.test(name) ? name : `'${name}'`}: '…'`).join(', ')} } }`;

/** The messages of limits that are within others. */
export const withinMessages = {
  unknownParent: (location: string, parent: string, known: readonly string[]) =>
    `${location}: option 'within' is '${parent}'${meant(parent, known)}, a name that no defined limit has, wants ` +
    (known.length > 0 ? `one of ${quoted(known, 'or')}` : "the name of another limit of 'define'"),
  circle: (location: string, names: readonly string[]) =>
    `${location}: option 'within' goes round in a circle, ${names.map((name) => `'${name}'`).join(' within ')}, wants a limit that is ` +
    'not within this one',
  tooDeep: (location: string, most: number) =>
    `${location}: option 'within' makes more than ${most} levels, wants at most ${most}`,
  parentWith: (location: string, parent: string, other: string) =>
    `${location}: option 'within' is '${parent}', which has the option '${other}', wants a limit without it`,
  hasOthersWithin: (location: string, name: string, option: string) =>
    `${location}: others are within limit '${name}', which cannot get the option '${option}', wants a limit that none is within`,
  parentAdapts: (location: string, parent: string, algo: string) =>
    `${location}: option 'within' is '${parent}' of algo '${algo}', which learns how much fits, wants a limit of another algorithm`,
  otherScope: (location: string, parent: string, own: string, other: string) =>
    `${location}: option 'within' is '${parent}' of scope '${other}', and this limit has scope '${own}', wants the same scope: ` +
    'both are charged together',
  otherLimitOfName: (location: string, child: string, parent: string) =>
    `${location}: limit '${child}' is within the defined limit '${parent}', and another limit here has that name, wants another 'name' for it`,
  skipsParent: (location: string, child: string, parent: string) =>
    `${location}: limit '${child}' holds there and is within '${parent}', wants '${child}' skipped, too: what is charged to it is charged to both`,
  notHere: (location: string, limit: string) =>
    `${location}: limit '${limit}' is within another one, whose key nothing says here, wants a limit without 'within'`,
  missingParents: (limit: string, missing: readonly string[], within: readonly string[]) =>
    `limit '${limit}' is within ${quoted(within)}, and the ${missing.length > 1 ? 'keys' : 'key'} of ${quoted(missing)} ` +
    `${missing.length > 1 ? 'are' : 'is'} missing, wants ${example(within)}`,
  wrongOptions: (got: unknown) => `the options are ${show(got)}, wants { within } or nothing`,
  wrongWithin: (limit: string, got: unknown, within: readonly string[]) =>
    `within is ${show(got)}, wants the keys of what limit '${limit}' is within: ${example(within)}`,
  unknownParents: (limit: string, unknown: readonly string[], within: readonly string[]) =>
    `limit '${limit}' is not within ${quoted(unknown, 'or')}, wants only ${quoted(within)} in 'within'`,
  notWithin: (limit: string) => `limit '${limit}' got the option 'within', wants none: it is within no other limit`,
  wrongParentKey: (limit: string, parent: string, got: unknown) =>
    `the key of '${parent}', which limit '${limit}' is within, is ${show(got)}, wants a string that is not empty`,
  noFutureUnits: (limit: string) =>
    `limit '${limit}' is within another one, so that units of the future cannot be reserved, wants no 'maxWait': what fits now is taken`,
} as const;
