import { show, wrongInput } from '../wording.js';
import { nearDuration } from './options.js';

/** The messages of the console. Those about a field of a request come after the name of the field. */
export const consoleMessages = {
  noModule: (location: string) =>
    `${location}: the app has no RateLimitModule. Import RateLimitModule.forRoot() or forRootAsync() next to it`,
  hidesResponse: () =>
    "the responses of this HTTP adapter are not Node responses and have none as 'raw', and the console needs one to write files and live data",
  secondConsole: (location: string) =>
    `${location}: the console is imported more than once in this app. Import it once for the whole app`,
  reservedName: (location: string, name: string) =>
    `${location}: the app has a limit named '${name}', a name that the console needs for the limit of its own routes. Choose another name`,
  misplaced: (location: string, option: string) =>
    `${location}: option '${option}' came from the factory, which is too late. Put it next to useFactory`,
  unguarded: (path: string) =>
    `the console at '${path}' has guards: 'none', so everybody who can reach this app sees its limits and who uses them`,
  noFields: (received: unknown) =>
    `${wrongInput('body', 'a JSON object', received)}; the app's body parser has to read application/json`,
  unknownField: (known: readonly string[]) => `unknown field, expected one of ${known.join(', ')}`,
  missingField: (expected: string) => `missing, expected ${expected}`,
  wrongField: (received: unknown, expected: string) =>
    `expected ${expected}, received ${show(received)}${nearDuration(received, expected)}`,
  readOnly: () => "this console is read-only: it has no option 'write'",
  needsRole: (role: string, option: string) =>
    `this needs the role '${role}', which only the guards of the option '${option}' grant` +
    (role === 'change' ? ': it changes limits for everyone, or permanently' : ''),
  crossOrigin: () => 'the request comes from a page of another origin',
  noHeader: (header: string) => `the header ${header} is missing, which the console's own page sends`,
  notJson: (received: unknown) => wrongInput('content type', 'application/json', received),
  tooMany: (seconds: number) => `too many console requests from this address: wait ${seconds} s`,
  tooManyViewers: (most: number) => `${most} viewers are already connected to this instance: close one of them first`,
  wrongActor: (received: unknown) =>
    `${wrongInput("option 'actor'", 'it to return a string that is not empty', received)}, so nothing was changed`,
  notLogged: (reason: string) => `the change is done, but could not be written to the log: ${reason}`,
  noFile: () => 'the console has no such page or file',
  nothingToClear: () => 'this key has no override, so nothing was changed',
  unknownLimit: () => 'this app has no limit of this name',
  unknownId: () => 'no key that this limit counted recently has this id. Enter the identity itself',
  countsPerRoute: () => 'this limit counts each route separately, so its keys are not known here',
  notOfLimit: (expected: string) => `expected ${expected}, received a key that this limit never uses`,
  countedByNone: (expected: readonly string[]) =>
    `expected ${expected.join(', or ')}, received an identity that no limit counts`,
  expectedPath: (levels: readonly { readonly name: string }[]) =>
    `expected the keys of ${levels.map(({ name }) => `'${name}'`).join(', ')} with slashes between them (` +
    `${levels.map(() => '…').join('/')}), received something else`,
  unchangeableLimit: () =>
    "this limit cannot be changed while the app runs. Choose a limit of 'define' or 'forFeature', or one of the module's with a 'name'",
  oneOfIdentityAndIp: () => "missing, expected either 'identity' or 'ip'",
  networkAsIdentity: () => "this is a network, and no limit counts networks. Use 'ip'",
  noCandidate: () => 'this limit has no candidate. Choose a limit with one',
  otherAlgorithm: (received: string, algo: string) =>
    `expected a candidate of '${algo}', received one of '${received}': another algorithm needs a new configuration`,
  /** A message about the key of a limit per header, for readers who can't call functions. */
  ofHeaders: (message: string) =>
    message.replaceAll(
      /headerIdentity\('([^']+)', value\): 'header:[^']+' and the hash of the value/g,
      (_, header: string) => `'header:${header.toLowerCase()}:' and the value, which is hashed here`,
    ),
  changedMeanwhile: () =>
    'someone has made another change since this was shown, so nothing was done. Check again what this undoes',
  unknownChange: (version: number) => `change ${version} is no longer in the history`,
  changedLater: (version: number) =>
    `change ${version} has changed the same setting since, so nothing was done. Undo that one first, or roll back`,
  unreachable: (reason: string) => `Redis does not answer, so only this instance is shown: ${reason}`,
  unread: (reason: string) => `Redis does not answer, so this is the last state that this instance has read: ${reason}`,
  unreadTenants: (reason: string) => `tenants could not be read: ${reason}`,
  unobservable: (reason: string) => `Redis does not answer, so the state of the app is unknown: ${reason}`,
  unreported: (reason: string) => `an alert could not be reported, and will be retried while it is active: ${reason}`,
  unstored: (reason: string) => `this instance cannot store its counts, so the others do not show it: ${reason}`,
} as const;
