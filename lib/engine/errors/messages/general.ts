import { DURATION_FORM, durationHint } from '../../options/values.js';
import { counted, didYouMean, listOf, missingInput, quoted, show, unknownName, wrongInput } from '../wording.js';
import { LACKS_A_RIGHT } from '../reasons.js';
import { almost, optionMessages } from './options.js';

/** The members of a decision that messages show. */
interface ShownDecision {
  readonly limit: string;
  readonly remaining: number;
  readonly retryAfterMs: number;
}

/** The place of an option, before the route whose request has the limit: `limits[0].rate for ReportsController.list`. */
const placeOf = (location: string, option: string) => location.replace(/( for [\w$.]+)?$/, `.${option}$1`);

/** The behavior of limits while the store fails, for people who see only the log. */
const ON_STORE_ERROR = "follows its 'onStoreError' (by default each instance counts by itself)";
const FALLS_BACK = `so each limit ${ON_STORE_ERROR}`;

const SET_UP = 'Import RateLimitModule.forRoot() or forRootAsync() in the root module of the app';

/** Suggests where a value belongs that isn't a limit. */
function otherThanALimit(received: unknown): string {
  if (typeof received === 'string') {
    return '; you can use the name of a defined limit in @RateLimit, or return it from a function';
  }
  if (typeof received === 'function') {
    return "; you can use a function or class that finds limits in the module's 'limits' and in @RateLimit";
  }
  if (received instanceof Promise) return '; await the promise first';
  return Array.isArray(received) && received.length > 0 ? '; write the limits of the list one by one' : '';
}

/** The reason of a failure of the store, for messages that say themselves that the store failed. */
function withoutStoreFailed(reason: string): string {
  return reason.startsWith(STORE_FAILED) ? reason.slice(STORE_FAILED.length) : reason;
}

const STORE_FAILED = 'the store failed: ';

/** The messages that don't belong to a specific topic. `location` is the place of the error in the user's code. */
export const messages = {
  wrongOption: (location: string, option: string, received: unknown, expected: string) =>
    optionMessages.wrong(placeOf(location, option), received, expected),
  lacksMethod: (location: string, option: string, type: Function, method: string, expected: string) =>
    `${wrongInput(`${location}.${option}`, expected, type)}, which has no method '${method}'`,
  missingOption: (location: string, option: string, expected: string) =>
    optionMessages.missing(placeOf(location, option), expected),
  unknownAlgorithm: (location: string, received: unknown, known: readonly string[]) => {
    const place = `${location}.algo`;
    const expected = `one of ${known.join(', ')}`;
    if (received === undefined) return missingInput(place, expected);
    const meant = didYouMean(received, known);
    return meant === ''
      ? wrongInput(place, expected, received)
      : `${place}: unknown algorithm ${show(received)}${meant}`;
  },
  tooFine: (location: string, rate: number, interval: number, units: number) =>
    `${location}: a 'rate' of ${rate} with an 'interval' of ${interval / 1000} ms and a 'burst' (or 'queue') of ${units} cannot be counted ` +
    "exactly in whole numbers below 2^53. Use a rounder or smaller 'rate', a shorter 'interval' or a smaller 'burst'",
  notALimit: (location: string, received: unknown) =>
    wrongInput(location, "a limit such as { algo: 'gcra', rate: 10, interval: '1s' }", received) +
    otherThanALimit(received),
  unknownName: (location: string, name: string, known: readonly string[]) =>
    `${location}: unknown limit ${show(name)}` +
    (didYouMean(name, known) ||
      (known.length > 0
        ? `, expected a defined limit: ${quoted(known)}`
        : ". No limit is defined: add it to 'define'")),
  alreadyApplies: (location: string, name: string, place: string) =>
    `${location}: '${name}' is the limit ${place}, which already applies to every route, so remove it here. ` +
    "Routes and code choose limits of 'define' by their names",
  nameOfModule: (location: string, name: string, place: string) =>
    `${location}: ${place} also has the name '${name}', and the two would be counted separately. Give this limit another name, or keep only ` +
    "one of the two: in 'limits' it applies to every route, in 'define' only where a route or code names it",
  twice: (location: string, name: string) =>
    `${location}: two limits have the name '${name}'. Give each limit of one place its own 'name'`,
  noName: (location: string, option: string) =>
    `${location}: option '${option}' has no effect here. Use it on a limit of 'define', forFeature or a policy: code that reads or adds units ` +
    'finds only those, by their names',
  noNamespace: (location: string) =>
    `${location}: its counters have no name that stays the same across builds. Add @RateLimit.namespace('<a unique name>')`,
  namespaceTwice: (location: string, namespace: string) =>
    `${location}: another place already has the namespace ${show(namespace)}. Use @RateLimit.namespace with a unique name`,
  wrongNamespace: (location: string, received: unknown) =>
    wrongInput(location, "1 to 128 printable ASCII characters that do not start with '@'", received),
  secondModule: () =>
    'RateLimitModule: forRoot or forRootAsync is imported more than once in this app, and only one import would take effect. Import it ' +
    "once, with all 'limits' and 'define'; other modules add named limits with forFeature",
  twoCopies: (name: string) =>
    `${name}: it comes from another copy of nestjs-sluice than the RateLimitModule of the app. Load both with import or both with ` +
    "require, and let 'npm ls nestjs-sluice' show a single version",
  noOptions: () =>
    'RateLimitModule: expected an object of options, received undefined. Import it once, by forRoot() or by forRootAsync() with a factory ' +
    'that returns one; other modules need not import it, since it is global',
  unguarded: (routes: readonly string[]) =>
    `RateLimitModule: option 'guard' is false, and no RateLimitGuard checks ${routes.join(', ')}. Add @UseGuards(RateLimitGuard) there or ` +
    "set 'guard' to true; set it to 'custom' if a guard of your own calls it, or to leave these routes unlimited",
  unreachedGateways: (routes: readonly string[]) =>
    `RateLimitModule: Nest's global guards do not reach gateways before Nest 12, so nothing checks ${routes.join(', ')}. Add ` +
    '@UseGuards(RateLimitGuard) to the gateway',
  unreachedFields: (routes: readonly string[]) =>
    `the options of GraphQLModule let no guard reach fields, so nothing checks ${routes.join(', ')}. Set ` +
    "fieldResolverEnhancers: ['guards', 'interceptors'] there",
  redisUndefined: () =>
    "option 'redis' is undefined, so each instance counts limits in its own memory. If this is intended, omit the option",
  noModule: () =>
    `limits are declared by @RateLimit, but nothing checks them, since no RateLimitModule is set up. ${SET_UP}`,
  notSetUp: (location: string) => `${location}: RateLimitModule is not set up. ${SET_UP}`,
  notImported: (location: string) => `${location}: RateLimitModule was not found. Add it to the imports of the app`,
  madeByHand: (type: string) =>
    `new ${type}(): this instance has none of the app's limits. Let Nest create it: ` +
    (type === 'RateLimitGuard'
      ? "the module binds it to all routes; with 'guard: false', write @UseGuards(RateLimitGuard) or app.useGlobalGuards(app.get(RateLimitGuard))"
      : 'consumer.apply(RateLimitMiddleware), or app.use(rateLimitMiddleware(app))'),
  noInterceptor: (location: string) =>
    `${location}: it has limits that are checked after the guards, but Nest found its class too late. List the class among the ` +
    "'controllers' or 'providers' of a module, directly or with useClass",
  notRead: (location: string) =>
    `${location}: Nest calls no guard before it, so nothing is limited there. @RateLimit belongs on routes, and on messages, fields and ` +
    "tools. Elsewhere, define the limit by a name in 'define', and put @Limited('<name>') on a method that returns a " +
    "promise, or inject it with @InjectLimiter('<name>') and call its consume()",
  holdsRejections: (location: string) =>
    `${location}: the limit holds requests while they run, and these have ended. Use a limit that counts them, such as ` +
    "algo 'sliding-log'",
  lostMethod: (location: string) =>
    `${location}: a decorator above it replaced the method with another function, so nothing would check its limits. Put ` +
    '@RateLimit and @SkipRateLimit above that decorator',
  sameDefaultName: (location: string, name: string) =>
    `${location}: a limit without a name would replace one of another place ('${name}') that counts by another function. Give each a 'name'`,
  definedTwice: (name: string) =>
    `define: the limit '${name}' is defined twice with different options. Define each name once`,
  unknownOption: (location: string, option: string, known: readonly string[], lacking = '') =>
    `${location}: ${optionMessages.unknown(option, known, lacking)}`,
  misplacedOption: (location: string, option: string, owner: string, known: readonly string[]) => {
    const meant = almost(option, known);
    return meant === ''
      ? `${location}: unknown option '${option}'. It is an option of ${owner}: move it there`
      : `${location}: unknown option '${option}'${meant} '${option}' is an option of ${owner}`;
  },
  optionAsName: (location: string, name: string, owner: string) =>
    `${location}: unknown option '${name}'. It is an option of ${owner}; here, expected limits by their names, such as ` +
    "{ api: { algo: 'gcra', rate: 10, interval: '1s' } }",
  notOptions: (location: string, received: unknown) => wrongInput(location, 'an object of options', received),
  misplacedGuard: () =>
    "RateLimitModule: option 'guard' came from the factory, which is too late. Put it next to useFactory, useClass or useExisting",
  readTwice: (transport: string) =>
    `RateLimitModule.readers: two readers have the transport '${transport}'. Add one for each transport`,
  noOpenTelemetry: () =>
    "RateLimitModule: option 'telemetry' is true, but the package '@opentelemetry/api' could not be loaded. Install it " +
    'next to nestjs-sluice',
  telemetryFailed: (reason: string) =>
    `the package '@opentelemetry/api' could not be loaded, so nothing is measured. Set 'telemetry: false' to do without it: ${reason}`,
  wrongStatus: (received: unknown, words: readonly string[]) =>
    wrongInput('whileFailing', `one of ${words.join(', ')}`, received),
  storeReplaced: () =>
    'Redis answers, but the Sentinels name another server as the master, so anything counted now is lost',
  missesFailovers: () =>
    'redis: the connection does not listen to its Sentinels, so a master that froze continues to count when it is back, until it is ' +
    'demoted and all of that is lost. Create the connection with { failoverDetector: true }',
  storeDown: () => `the store failed, ${FALLS_BACK}`,
  wrongMode: (variable: string, received: string) =>
    wrongInput(`environment variable ${variable}`, "'shadow', 'enforce' or no value", received),
  shadowMode: () => 'RATE_LIMIT_MODE is shadow: every limit counts and reports, but none rejects or delays requests',
  unlimitedRoutes: (routes: readonly string[], all: number) =>
    `expected a limit on each route, found none on ${routes.length} of ${counted(all, 'route')}:\n${routes.map((route) => `  ${route}\n`).join('')}` +
    "Add @RateLimit, a limit to the module's 'limits', or @SkipRateLimit({ because: '…' })",
  wrongReason: (received: unknown) =>
    wrongInput('@SkipRateLimit.because', 'the reason as a text that is not empty', received),
  skipsNothing: (location: string, name: unknown, known: readonly string[]) =>
    wrongInput(
      location,
      `a limit of the module or the class (${known.length > 0 ? quoted(known) : 'neither has one'})`,
      name,
    ) +
    (typeof name === 'string'
      ? ''
      : "; an object of names is for @SkipThrottle of @nestjs/throttler, and 'npx nestjs-sluice migrate' converts an app from it"),
  noAddress: (name: string) =>
    `limit '${name}' does not apply to requests that have neither its key nor an address. Give it another 'key' there`,
  countsAddress: (name: string, route: string, option: string, phase: string) =>
    `limit '${name}' on ${route}: its '${option}' is a function that found nothing in phase '${phase}', so the limit counts by address. If this ` +
    "is intended, set onMissingKey: 'ip'" +
    (phase === 'guard' ? "; if a guard of the route provides the key, add phase: 'authenticated'" : ''),
  keyOfNothing: (name: string, route: string, option: string, key: string, phase: string) =>
    `limit '${name}' on ${route}: its '${option}' returned ${show(key)}, so all requests that lack this value count together. Return ` +
    'undefined for them' +
    (phase === 'authenticated'
      ? ''
      : `; request.user is known only after the guards: if the key needs it, add phase: 'authenticated'`),
  userWithoutId: (name: string, route: string, fields: readonly string[]) =>
    `limit '${name}' on ${route}: request.user has no 'id', 'sub' or 'userId' that is a string or a number, so the request counts as ` +
    `unauthenticated. request.user has ${fields.length === 0 ? 'no fields' : `the fields ${quoted(fields)}`}. Set the limit's 'key' to a ` +
    "function that returns the field that identifies a user, and add phase: 'authenticated'",
  functionFailed: (name: string, route: string, option: string, phase: string, isBeforeUser: boolean) =>
    `limit '${name}' on ${route}: its '${option}' failed in phase '${phase}', so the request fails` +
    (isBeforeUser
      ? "; request.user is undefined there: if a guard of the route sets it, add phase: 'authenticated'"
      : ''),
  foundUserLater: (name: string, route: string, option: string) =>
    `limit '${name}' on ${route}: its '${option}' found nothing in phase 'guard', and the guards found a user after it, so ` +
    "users of one address count as one. Add phase: 'authenticated'",
  noReader: (name: string, transport: unknown) =>
    `limit '${name}': no reader reads calls of the transport ${show(transport)}, so their key is unknown, and they are ` +
    "rejected. Add a RequestReader for it to the option 'readers', set the limit's 'key' to 'global' or a function, or let " +
    "these calls through with onMissingReader: 'skip'",
  skipsUnread: (name: string, transport: unknown) =>
    `limit '${name}' does not apply to calls of the transport ${show(transport)}: no reader reads them, so their key is ` +
    "unknown. Add a RequestReader for it to the option 'readers', or set the limit's 'key' to 'global' or a function",
  uncheckable: () => 'Rate limits cannot be checked here',
  hidesHeaders: (response: string) =>
    `the responses of the HTTP adapter (${response}) have no method that sets headers, and no Node response as 'raw', so limits ` +
    'set no headers, not even Retry-After',
  hidesEnd: (response: string) =>
    `the responses of the HTTP adapter (${response}) are not Node responses and have none as 'raw', so a request ends with its handler: ` +
    "'concurrency' and 'count' cannot see that its response is still being sent, or that its client has left",
  proxyUntrusted: (setting: string) =>
    'a request had the header X-Forwarded-For, which is not trusted, so limits by address count the address that connects: behind a proxy, ' +
    `all its clients together. Name the proxies to trust with ${setting}. Without a proxy nothing is wrong: any client may send this header`,
  proxyCountIgnored: (count: number, setting: string) =>
    `Fastify was given a number of proxies to trust (${count}) but trusts none of them, so limits by address count the address that connects: ` +
    `behind a proxy, all its clients together. Name the proxies to trust by their addresses with ${setting}`,
  trustsAnyone: (name: string) =>
    `the framework trusts X-Forwarded-For from every client, so each request can choose the address that limit '${name}' counts. Set ` +
    "'trust proxy' (Express) or 'trustProxy' (Fastify) to the addresses of the proxies instead of true (docs/guides/behind-a-proxy.md)",
  noUser: () => 'Authentication is required',
  noKey: (key: string) => `The request has no ${key}`,
  exceeded: () => 'Too many requests',
  unavailable: () => 'Rate limits cannot be checked at the moment',
  shuttingDown: () => 'The server is shutting down',
  clientClosedRequest: () => 'Client Closed Request',
  wrongHistory: (received: unknown) => wrongInput('number of windows', 'a whole number >= 1', received),
  storeFailing: (reason: string) => `the store failed, ${FALLS_BACK}: ${withoutStoreFailed(reason)}`,
  wrongPolicy: (received: unknown) => `expected 'local', 'allow' or 'deny' and no promise, received ${show(received)}`,
  policyFailed: (name: string) =>
    `the function 'onStoreError' of limit '${name}' failed, so this process counts the limit in memory`,
  nodeFailing: (node: string, reason: string) =>
    `node ${node} of the store failed, so each limit of its keys ${ON_STORE_ERROR}: ${withoutStoreFailed(reason)}`,
  nodeReplaced: (node: string) =>
    `node ${node} of the store no longer has any counters: other nodes have taken them over`,
  nodeRecovered: (node: string) => `node ${node} of the store answers again`,
  storeRecovered: () => 'the store answers again',
  wrongCost: (received: unknown) => wrongInput('cost', 'a whole number >= 0', received),
  wrongUnits: (received: unknown) => wrongInput('units', 'a whole number >= 1', received),
  wrongStrict: (received: unknown) => wrongInput('strict', 'true or false', received),
  wrongKey: (received: unknown) => wrongInput('key', 'a string that is not empty', received),
  wrongResolvedKey: (limit: string, received: unknown) =>
    wrongInput(`key of limit '${limit}'`, 'a string, a finite number, or nothing', received),
  notChecks: (call: string, received: unknown) => wrongInput(call, 'a list of { limit, key }', received),
  emptyCheck: (call: string) => `${call}: expected at least one { limit, key }, received no limits`,
  tooManyLimits: (call: string, received: number, most: number) =>
    `${call}: expected at most ${most} limits, received ${received}`,
  tooMuchWork: (call: string, received: number, work: number, most: number) =>
    `${call}: expected limits with the work of at most ${most} plain ones, received ${received} limits with that of ${work}. Split the list`,
  sameKeyTwice: (name: string, key: string) =>
    `check: limit '${name}' is listed twice for the key ${show(key)}. List it once, with the sum of the costs`,
  noHistory: (name: string, able: readonly string[]) =>
    `limit '${name}' keeps no history. Use algo ${quoted(able, 'or')}`,
  unusableRedis: (reason: string) =>
    `RateLimitModule.redis: no connection could be created from this value (${reason}). Expected something that ioredis can connect to`,
  noIoredis: () =>
    "redis: the package 'ioredis' could not be loaded. Install it next to nestjs-sluice, or pass a node-redis client as 'redis'",
  countFailed: (name: string) => `the function 'count' of limit '${name}' failed, so the request counts`,
  measuresHeld: (location: string, algo: string, able: readonly string[]) =>
    `${location}.cost: units of '${algo}' are held, so they cannot be settled by bytes or duration. Use a number, or algo ${quoted(able, 'or')}`,
  notMeasured: (name: string, transport: string) =>
    `limit '${name}' has a cost by bytes, but the bytes of a response are unknown (transport '${transport}'), so its requests are charged the estimate. Bytes are known over HTTP, if the response has a connection`,
  wrongCount: (received: unknown) => `expected true, false or a whole number >= 0, received ${show(received)}`,
  answerFailed: (option: string, name: string) =>
    `the function '${option}' of limit '${name}' failed, so the rejection has its default form`,
  answerLate: () => 'it took longer than the resolveTimeout',
  wrongRefusal: (received: unknown) =>
    `expected an object of only 'status' (a whole number from 400 to 599), 'body' (an object) and 'headers' (an object of strings), received ${show(received)}`,
  headersFailed: (index: number) =>
    `the function 'headers[${index}]' failed, so the responses lack the headers that it would have set`,
  wrongHeaders: (received: unknown) => `expected an object of headers and no promise, received ${show(received)}`,
  wrongParts: (transport: string, received: unknown) =>
    wrongInput(
      `reader of the transport '${transport}'`,
      "an object of 'request' and 'response' and no promise",
      received,
    ),
  wrongCall: (transport: string, received: unknown) =>
    wrongInput(
      `reader of the transport '${transport}'`,
      'the object that stands for the call and no promise',
      received,
    ),
  wrongCallOf: (received: unknown) => wrongInput('rateLimitOf', 'the context or the request of a call', received),
  wrongAnswer: (received: unknown) =>
    `expected a string 'message' and an object 'body' and no promise, received ${show(received)}`,
  noDecision: (received: unknown) => `store: expected a decision for a reservation, received ${show(received)}`,
  timedOut: (name: string, timeoutMs: number) => `limit '${name}' allowed nothing within ${timeoutMs} ms`,
  neverFits: (name: string, cost: number, quota: number) =>
    `limit '${name}' never allows ${counted(cost, 'unit')} at once, but at most ${quota}`,
  notReservable: (name: string, algo: string, able: readonly string[]) =>
    `limit '${name}' of algo '${algo}' does not support reservations. Use ${listOf(able, 'or')}`,
  notHeld: (name: string, algo: string, able: readonly string[]) =>
    `limit '${name}' of algo '${algo}' gives no lease to hold. Use algo ${quoted(able, 'or')}`,
  onlyHeld: (name: string, algo: string, what: string) =>
    `limit '${name}' of algo '${algo}' cannot be ${what}. Release its leases instead`,
  wrongActual: (received: unknown) => wrongInput('actual cost', 'a whole number >= 0', received),
  wrongDuration: (option: string, received: unknown) =>
    wrongInput(option, `${DURATION_FORM}, at most 1 year`, received) + durationHint(received),
  wrongDate: (name: string, received: unknown) => wrongInput(name, 'a date', received),
  expectedAllowance: ({ limit, retryAfterMs }: ShownDecision) =>
    `limit '${limit}': expected it to allow, but it rejected (it would allow in ${retryAfterMs} ms)`,
  expectedRemaining: ({ limit, remaining }: ShownDecision, expected: number) =>
    `limit '${limit}': expected ${counted(expected, 'unit')} left, but it has ${remaining}`,
  expectedRefusal: ({ limit, remaining }: ShownDecision) =>
    `limit '${limit}': expected it to reject, but it allowed (and has ${counted(remaining, 'unit')} left)`,
  expectedRefusalBy: (name: string, refusing: readonly string[]) =>
    `limit '${name}': expected it to reject, but ${quoted(refusing)} rejected`,
  expectedWait: ({ limit, retryAfterMs }: ShownDecision, expected: number) =>
    `limit '${limit}': expected it to reject for ${expected} ms, but it rejected for ${retryAfterMs} ms`,
  wrongSignal: (received: unknown) => wrongInput('signal', 'an AbortSignal', received),
  wrongWork: (received: unknown) => wrongInput('hold', 'a function', received),
  nothingToSettle: (name: string | undefined) =>
    name === undefined
      ? "settle: no limit of this request has its own 'cost'. Pass the name of a limit"
      : `settle: the limit '${name}' was not charged for this request`,
  notOfTenant: (received: unknown) => wrongInput('options', '{ share }, { within } or nothing', received),
  noShare: (limit: string) => `limit '${limit}' has no option 'share'. Remove 'share' from the call`,
  notShared: (location: string, algo: string, received: string) =>
    `${wrongInput(`${location}.scope`, "'instance'", received)}: '${algo}' learns how much one process can take`,
  overloaded: () => 'Too busy, try again later',
  closed: () => 'the app is shutting down',
  resends: () =>
    'redis: the client resends commands after its connection breaks, so a check can be charged twice, and it has no duplicate() for a ' +
    'separate connection. Create it with { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }, or pass its options instead',
  movedToOutbound: (method: string) =>
    `LimiterService.${method} has moved: import OutboundLimiter from 'nestjs-sluice/outbound', inject it, and call its ${method}`,
  storeTimeout: (timeoutMs: number) => `the store did not answer within ${timeoutMs} ms`,
  checkTooLong: (timeoutMs: number) =>
    `expected all limits of the check to be decided within ${timeoutMs} ms, received answers for only some of them`,
  checksTooLong: (reason: string) => `a check took too long, so its limits follow their 'onStoreError': ${reason}`,
  storeNotReady: (status: string, error?: string) =>
    `Redis is not connected (status '${status}')${error === undefined ? '' : `: ${error}`}`,
  slotMoving: (slot: number, reply: string, reason: string) =>
    `slot ${slot} of the Cluster is being moved (${reply}): ${reason}`,
  slotFailing: (slot: number, node: string, reason: string) =>
    `slot ${slot} on node ${node} of the store failed, so each limit of its keys ${ON_STORE_ERROR}: ${reason}`,
  slotRecovered: (slot: number) => `slot ${slot} of the store answers again`,
  connectionLost: (server?: string) =>
    `the connection to Redis${server === undefined ? '' : ` (${server})`} was lost before it answered`,
  storeBroken: () => 'Redis failed repeatedly and is skipped for now (circuit open)',
  storeFailed: (reason: string) =>
    STORE_FAILED +
    reason +
    (LACKS_A_RIGHT.test(reason) ? ' (the rights that a Redis user needs: docs/guides/redis-users.md)' : ''),
  noDecisions: (received: unknown, entries: number) =>
    `store: expected a list of ${entries} decisions for a check, received ${show(received)}`,
  noReply: (received: unknown) => `the script returned the unexpected reply ${show(received)}`,
  wrongReply: (at: number, received: unknown) =>
    `the script's reply has the unexpected value ${show(received)} at ${at}`,
  wrongPatch: (location: string, received: unknown, own: readonly string[]) =>
    wrongInput(location, `an object of at least one of ${own.join(', ')}`, received),
  unchangeable: (location: string, option: string, own: readonly string[]) =>
    `${location}.${option}: cannot be changed while the app runs, expected one of ${own.join(', ')}`,
  /** `choosesByRequest`: functions find limits. */
  unnamedLimit: (location: string, name: unknown, known: readonly string[], choosesByRequest: boolean) =>
    `${location}: ${unknownName('limit', name, [])}` +
    (didYouMean(name, known) ||
      `, expected a limit of 'define', 'forFeature' or 'limits' with a 'name': ${known.length > 0 ? quoted(known) : 'there is none'}`) +
    (choosesByRequest ? '; to change limits that a function returns, let it return the names of defined limits' : ''),
  otherOfName: (location: string, name: string, defined: string) =>
    `${location}: the limit '${name}' has the name of another one in ${defined}, and changes by that name do not reach it. ` +
    `Use the name alone ('${name}') to use that limit, or choose another name`,
  notARecord: (received: string) => `expected a record of an override, received ${show(received)}`,
  overrideIgnored: (kind: string, name: string, key: string, reason: string) =>
    key === ''
      ? `the changed ${kind} of limit '${name}' is ignored, and the configured one applies: ${reason}`
      : `the ${kind} of limit '${name}' for the key ${show(key)} is ignored: ${reason}`,
  wrongVersion: (location: string, received: unknown, first: number, last: number) =>
    `${wrongInput(`${location}.version`, `a whole number from ${first} to ${last}`, received)}; the history has only these`,
  unknownChange: (location: string, version: number) =>
    `${location}: change ${version} comes from a later release, and only that release can undo it`,
  rollbackOvertaken: () => 'other changes were made at the same time, so nothing was rolled back',
  overrideKeyExpected: (longest: number) =>
    "the key of one identity such as 'tenant:acme', or the beginning of keys with a star at the end such as 'tenant:*', of at " +
    `most ${longest} characters (leave it out for all identities)`,
  overridesNotWatched: (channel: string, reason: string) =>
    'changes of rates do not arrive at once, but are read every 2 s. To receive them at once, allow this Redis user SUBSCRIBE and ' +
    `PUBLISH on the channel '${channel}': ${reason}`,
  refusalsNotWatched: (channel: string, reason: string) =>
    'rejections are not cached, since other instances cannot report the units that they give back. Allow this Redis user SUBSCRIBE and ' +
    `PUBLISH on the channel '${channel}', or set 'refusalCache: false': ${reason}`,
  overridesUnreadable: (reason: string) => `changed rates cannot be read, so the last known ones apply: ${reason}`,
  noQuestion: (location: string, received: unknown) =>
    wrongInput(
      location,
      '{ limit, key }, { controller, handler, key }, or the ExecutionContext of a request',
      received,
    ),
  unknownController: (location: string, received: string, known: readonly string[]) =>
    wrongInput(`${location}.controller`, `a class with routes (${known.join(', ') || 'there is none'})`, received),
  sameController: (location: string, received: string) =>
    `${location}.controller: several classes have the name ${show(received)}. Pass the class itself`,
  unknownHandler: (location: string, controller: string, received: string, known: readonly string[]) =>
    wrongInput(`${location}.handler`, `a route of ${controller} (${known.join(', ') || 'there is none'})`, received),
  clockUnsettled: () => "the server's clock and the calendar window did not settle after 3 attempts",
} as const;
