import { LACKS_A_RIGHT } from '../lacks-a-right.js';
import { DURATION_FORM, durationHint } from '../../options/values.js';
import { counted, listOf, show } from '../wording.js';
import { almost, meant, optionMessages } from './options.js';

const quoted = (word: string) => `'${word}'`;

/** The parts of a decision that messages show. */
interface ShownDecision {
  readonly limit: string;
  readonly remaining: number;
  readonly retryAfterMs: number;
}

/** Where something belongs that stands in place of a limit. */
function otherThanALimit(got: unknown): string {
  if (typeof got === 'string')
    return '; the name of a defined limit can stand in @RateLimit, or be returned by a function';
  if (typeof got === 'function')
    return "; a function or class that finds limits can stand in the module's 'limits' and in @RateLimit";
  if (got instanceof Promise) return '; a promise is none: await it before';
  return Array.isArray(got) && got.length > 0 ? '; a list is none: write its limits one by one' : '';
}

/** The messages that belong to no topic of their own. `location` is where in the user's code the error is. */
export const messages = {
  wrongOption: (location: string, option: string, got: unknown, wants: string) =>
    `${location}: ${optionMessages.wrong(option, got, wants)}`,
  lacksMethod: (location: string, option: string, type: Function, method: string, wants: string) =>
    `${location}: option '${option}' is ${show(type)}, which has no method '${method}', wants ${wants}`,
  missingOption: (location: string, option: string, wants: string) =>
    `${location}: ${optionMessages.missing(option, wants)}`,
  unknownAlgorithm: (location: string, got: unknown, known: readonly string[]) =>
    `${location}: option 'algo' is ${got === undefined ? 'missing' : show(got)}${meant(got, known)}, wants one of ${known.join(', ')}`,
  tooFine: (location: string, rate: number, interval: number, units: number) =>
    `${location}: options 'rate', 'interval' and 'burst' (or 'queue') are ${rate}, ${interval / 1000} ms and ${units}, which cannot be ` +
    `counted exactly in whole numbers below 2^53; wants a rounder or smaller 'rate', a shorter 'interval' or less 'burst'`,
  notALimit: (location: string, got: unknown) =>
    `${location}: got ${show(got)}, wants a limit such as { algo: 'gcra', rate: 10, interval: '1s' }${otherThanALimit(got)}`,
  unknownName: (location: string, name: string, known: readonly string[]) =>
    `${location}: got the name ${show(name)}${meant(name, known)}, wants a defined limit: ` +
    (known.length > 0 ? known.map((each) => `'${each}'`).join(', ') : "none is defined; add it to 'define'"),
  alreadyApplies: (location: string, name: string, place: string) =>
    `${location}: '${name}' is the limit ${place}, which already applies to every route, so remove it here. ` +
    "Routes and code choose limits of 'define' by their names; expected one of these",
  nameOfModule: (location: string, name: string, place: string) =>
    `${location}: ${place} has the name '${name}', too, and the two would count on their own. Expected a name of its own, or the limit in ` +
    "one of the two: in 'limits' it applies to every route, in 'define' where a route or code names it",
  twice: (location: string, name: string) =>
    `${location}: two limits are named '${name}', wants a different 'name' for each limit of one place`,
  noName: (location: string, option: string) =>
    `${location}: option '${option}' is of no use here, wants it on a limit of 'define', forFeature or a policy: code that reads or adds ` +
    'units finds only those, by their names',
  noNamespace: (location: string) =>
    `${location}: its counters have no name that stays the same across builds, wants ` +
    "@RateLimit.namespace('<a name of its own>')",
  namespaceTwice: (location: string, namespace: string) =>
    `${location}: the namespace ${show(namespace)} is that of another place, too, wants @RateLimit.namespace with a name of its own`,
  wrongNamespace: (location: string, got: unknown) =>
    `${location}: got ${show(got)}, wants 1 to 128 printable ASCII characters, of which '@' is not the first`,
  secondModule: () =>
    'RateLimitModule: forRoot or forRootAsync is imported more than once in this app, and only one of them would hold; wants one ' +
    "for the whole app, with all 'limits' and 'define'; other modules add named limits with forFeature",
  noOptions: () =>
    'RateLimitModule: got undefined, wants an object of options. Import it once, by forRoot() or by forRootAsync() whose factory ' +
    'gives one; other modules need not import it, since it is global',
  unguarded: (routes: readonly string[]) =>
    `RateLimitModule: option 'guard' is false, and no RateLimitGuard checks ${routes.join(', ')}; wants ` +
    "@UseGuards(RateLimitGuard) there, 'guard' true, or 'guard' 'custom' if a guard of your own calls it or they are to rest",
  unreachedGateways: (routes: readonly string[]) =>
    `RateLimitModule: Nest's global guards do not reach gateways before Nest 12, so nothing checks ${routes.join(', ')}; wants ` +
    '@UseGuards(RateLimitGuard) on the gateway',
  unreachedFields: (routes: readonly string[]) =>
    `the options of GraphQLModule let no guard reach fields, so nothing checks ${routes.join(', ')}; set ` +
    "fieldResolverEnhancers: ['guards', 'interceptors'] there",
  redisUndefined: () =>
    "option 'redis' is undefined, so limits are counted in this process, by each instance for itself; if that is meant, leave it out",
  noModule: () =>
    'limits are declared by @RateLimit, and nothing checks them, since no RateLimitModule is set up; import ' +
    'RateLimitModule.forRoot() or forRootAsync() in the root module of the app',
  madeByHand: (type: string) =>
    `new ${type}(): it lacks the limits of the app, wants the class itself, of which Nest makes one: ` +
    (type === 'RateLimitGuard'
      ? "the module binds it to all routes; with 'guard: false', write @UseGuards(RateLimitGuard) or app.useGlobalGuards(app.get(RateLimitGuard))"
      : 'consumer.apply(RateLimitMiddleware), or app.use(rateLimitMiddleware(app))'),
  noInterceptor: (location: string) =>
    `${location}: it has limits that are checked after the guards, but Nest learnt of its class too late; wants a class among the ` +
    "'controllers' or 'providers' of a module, as itself or with useClass",
  notRead: (location: string) =>
    `${location}: Nest calls no guard before it, so nothing is limited there. @RateLimit belongs on routes, and on messages, fields and ` +
    "tools. Elsewhere, define the limit by a name in 'define', inject it with @InjectLimiter('<name>'), and call its consume()",
  holdsRejections: (location: string) =>
    `${location}: the limit holds requests while they run, and these have ended. Expected a limit that counts them, such as ` +
    "algo 'sliding-log'",
  lostMethod: (location: string) =>
    `${location}: a decorator above it put another function in place of the method, and nothing would check its limits; wants ` +
    '@RateLimit and @SkipRateLimit above that decorator',
  sameDefaultName: (location: string, name: string) =>
    `${location}: a limit without a name would replace one of another place ('${name}') that counts by another function; wants a ` +
    "'name' for each",
  definedTwice: (name: string) =>
    `define: the limit '${name}' is defined twice with different options, wants one definition a name`,
  unknownOption: (location: string, option: string, known: readonly string[]) =>
    `${location}: option '${option}' ${optionMessages.unknown(option, known)}`,
  misplacedOption: (location: string, option: string, owner: string, known: readonly string[]) =>
    `${location}: option '${option}' is unknown here${almost(option, known)}, since it is an option of ${owner}; wants it there`,
  optionAsName: (location: string, name: string, owner: string) =>
    `${location}: option '${name}' is unknown here, since it is an option of ${owner}; wants limits by their names, such as ` +
    "{ api: { algo: 'gcra', rate: 10, interval: '1s' } }",
  notOptions: (location: string, got: unknown) => `${location}: got ${show(got)}, wants an object of options`,
  misplacedGuard: () =>
    "RateLimitModule: option 'guard' came from the factory, wants it beside useFactory, useClass or useExisting",
  readTwice: (transport: string) =>
    `RateLimitModule: option 'readers' holds two readers of the transport '${transport}', wants one for each`,
  noOpenTelemetry: () =>
    "RateLimitModule: option 'telemetry' is true, and the package '@opentelemetry/api' could not be loaded, wants it installed " +
    'next to nestjs-sluice',
  telemetryFailed: (reason: string) =>
    `the package '@opentelemetry/api' could not be loaded, so nothing is measured; 'telemetry: false' does without: ${reason}`,
  wrongStatus: (got: unknown, words: readonly string[]) =>
    `whileFailing is ${show(got)}, wants one of ${words.join(', ')}`,
  storeReplaced: () =>
    'Redis answers, but the Sentinels name another server as the master, so what is counted now is lost',
  missesFailovers: () =>
    'redis: the connection does not listen to its Sentinels, so a master that froze goes on counting when it is back, until it is ' +
    'demoted and all of that is lost; make it with { failoverDetector: true }',
  storeDown: () => "the store fails, so each limit does what its 'onStoreError' says",
  wrongMode: (variable: string, got: string) =>
    `the variable ${variable} of the environment is ${show(got)}, wants 'shadow', 'enforce' or nothing`,
  shadowMode: () => 'RATE_LIMIT_MODE is shadow: every limit counts and reports, and none refuses or delays',
  skipsNothing: (location: string, name: unknown, known: readonly string[]) =>
    `${location}: got the name ${show(name)}, wants a limit that holds there: ` +
    (known.length > 0 ? known.map((each) => `'${each}'`).join(', ') : 'none does') +
    (typeof name === 'string'
      ? ''
      : "; an object of names is for @SkipThrottle of @nestjs/throttler, from which 'npx nestjs-sluice migrate' moves an app"),
  noAddress: (name: string) =>
    `limit '${name}' does not apply where a request has neither its key nor an address; give it another 'key' there`,
  countsAddress: (name: string, route: string, option: string, phase: string) =>
    `limit '${name}' on ${route}: its '${option}' is a function that found nothing in phase '${phase}', so the address counts. If that is ` +
    "meant, say so by onMissingKey: 'ip'" +
    (phase === 'guard' ? "; if the key is what a guard of the route finds, add phase: 'authenticated'" : ''),
  keyOfNothing: (name: string, route: string, option: string, key: string, phase: string) =>
    `limit '${name}' on ${route}: its '${option}' returned ${show(key)}, so all requests that lack this value count together. Return ` +
    'undefined for them' +
    (phase === 'authenticated'
      ? ''
      : `; request.user is known only after the guards: if the key needs it, add phase: 'authenticated'`),
  userWithoutId: (name: string, route: string, fields: readonly string[]) =>
    `limit '${name}' on ${route}: request.user has no 'id', 'sub' or 'userId' that is a string or a number, so it counts as no user. It ` +
    `has ${fields.length === 0 ? 'no fields' : `the fields ${fields.map(quoted).join(', ')}`}; give the limit a function that returns the ` +
    "one that identifies a user as its 'key', and phase: 'authenticated'",
  functionFailed: (name: string, route: string, option: string, phase: string, isBeforeUser: boolean) =>
    `limit '${name}' on ${route}: its '${option}' failed in phase '${phase}', and so does the request` +
    (isBeforeUser
      ? "; request.user is undefined there: if it is what a guard of the route finds, add phase: 'authenticated'"
      : ''),
  foundUserLater: (name: string, route: string, option: string) =>
    `limit '${name}' on ${route}: its '${option}' found nothing in phase 'guard', and the guards found a user after it, so ` +
    "users of one address count as one; add phase: 'authenticated'",
  noReader: (name: string, transport: unknown) =>
    `limit '${name}': no reader reads calls of the transport ${show(transport)}, so their key is unknown, and they are ` +
    "refused; add a RequestReader for it to the option 'readers', give the limit a 'key' that is 'global' or a function, or let " +
    "these calls through with onMissingReader: 'skip'",
  skipsUnread: (name: string, transport: unknown) =>
    `limit '${name}' does not apply to calls of the transport ${show(transport)}: no reader reads them, so their key is ` +
    "unknown; add a RequestReader for it to the option 'readers', or give the limit a 'key' that is 'global' or a function",
  uncheckable: () => 'Rate limits cannot be checked here',
  hidesHeaders: (response: string) =>
    `the responses of the HTTP adapter (${response}) have no method that sets headers, and hold no response of Node as 'raw', so limits ` +
    'set no headers, not even Retry-After',
  hidesEnd: (response: string) =>
    `the responses of the HTTP adapter (${response}) neither are Node's nor hold one as 'raw', so a request ends with its handler: ` +
    "'concurrency' and 'count' see neither that its response is still being sent, nor that its client has left",
  proxyUntrusted: (setting: string) =>
    'a request came with X-Forwarded-For, which is not trusted, so limits by address count who connects: behind a proxy, all ' +
    `its clients together. Name the proxies to trust with ${setting}. Without a proxy nothing is wrong: any client may send it`,
  proxyCountIgnored: (count: number, setting: string) =>
    `Fastify was given a number of proxies to trust (${count}) and trusts none of them, so limits by address count who connects: behind a ` +
    `proxy, all its clients together. Name the proxies to trust by their addresses with ${setting}`,
  trustsAnyone: (name: string) =>
    `the framework believes every client that sends X-Forwarded-For, so each request can choose the address by which limit '${name}' ` +
    "counts it; wants the addresses of the proxies in place of true as 'trust proxy' of Express or " +
    "'trustProxy' of Fastify (docs/guides/behind-a-proxy.md)",
  noUser: () => 'Authentication is required',
  noKey: (key: string) => `The request has no ${key}`,
  exceeded: () => 'Too many requests',
  unavailable: () => 'Rate limits cannot be checked at the moment',
  shuttingDown: () => 'The server is shutting down',
  clientClosedRequest: () => 'Client Closed Request',
  wrongHistory: (got: unknown) => `the number of windows is ${show(got)}, wants a whole number >= 1`,
  storeFailing: (reason: string) => `the store failed, so each limit does what its 'onStoreError' says: ${reason}`,
  wrongPolicy: (got: unknown) => `it gave ${show(got)}, wants 'local', 'allow' or 'deny', no promise`,
  policyFailed: (name: string) => `the function 'onStoreError' of limit '${name}' failed, so it is counted in process`,
  nodeFailing: (node: string, reason: string) =>
    `node ${node} of the store failed, so each limit of its keys does what its 'onStoreError' says: ${reason}`,
  nodeReplaced: (node: string) =>
    `node ${node} of the store has no counters any more, since others have taken them over`,
  nodeRecovered: (node: string) => `node ${node} of the store answers again`,
  storeRecovered: () => 'the store answers again',
  wrongCost: (got: unknown) => `cost is ${show(got)}, wants a whole number >= 0`,
  wrongUnits: (got: unknown) => `units is ${show(got)}, wants a whole number >= 1`,
  wrongStrict: (got: unknown) => `strict is ${show(got)}, wants true or false`,
  wrongKey: (got: unknown) => `key is ${show(got)}, wants a string that is not empty`,
  wrongResolvedKey: (limit: string, got: unknown) =>
    `the key of limit '${limit}' resolved to ${show(got)}, wants a string, a finite number, or nothing`,
  notChecks: (call: string, got: unknown) => `${call} got ${show(got)}, wants a list of { limit, key }`,
  emptyCheck: (call: string) => `${call} got no limits, wants at least one { limit, key }`,
  tooManyLimits: (call: string, got: number, most: number) => `${call} got ${got} limits, wants at most ${most}`,
  tooMuchWork: (call: string, got: number, work: number, most: number) =>
    `${call} got ${got} limits, which ask for the work of ${work} plain ones, wants at most that of ${most}: split the list`,
  sameKeyTwice: (name: string, key: string) =>
    `check holds the limit '${name}' twice for the key ${show(key)}, wants it once, with the sum of the costs`,
  noHistory: (name: string, able: readonly string[]) =>
    `limit '${name}' keeps no history, wants algo ${listOf(able.map(quoted), 'or')}`,
  unusableRedis: (reason: string) =>
    `RateLimitModule: option 'redis' makes no connection (${reason}), wants what ioredis can connect to`,
  noIoredis: () =>
    "redis: the package 'ioredis' could not be loaded, wants it installed next to nestjs-sluice, or a client of node-redis as 'redis'",
  countFailed: (name: string) => `the function 'count' of limit '${name}' failed, so the request counts`,
  wrongCount: (got: unknown) => `it returned ${show(got)}, expected true, false or a whole number >= 0`,
  answerFailed: (option: string, name: string) =>
    `the function '${option}' of limit '${name}' failed, so the refusal says what it would without it`,
  answerLate: () => 'it took longer than the resolveTimeout',
  wrongRefusal: (got: unknown) =>
    `it gave ${show(got)}, wants an object of only 'status' (a whole number from 400 to 599), 'body' (an object) and 'headers' (an object of strings)`,
  headersFailed: (index: number) =>
    `the function 'headers[${index}]' failed, so the responses lack what it would have set`,
  wrongHeaders: (got: unknown) => `it gave ${show(got)}, wants an object of headers, no promise`,
  wrongParts: (transport: string, got: unknown) =>
    `the reader of the transport '${transport}' gave ${show(got)}, wants an object of 'request' and 'response', no promise`,
  wrongCall: (transport: string, got: unknown) =>
    `the reader of the transport '${transport}' gave ${show(got)} for a call, wants the object that stands for it, no promise`,
  wrongCallOf: (got: unknown) => `rateLimitOf: got ${show(got)}, wants the context or the request of a call`,
  wrongAnswer: (got: unknown) =>
    `it gave ${show(got)}, wants a string of 'message' and an object of 'body', no promise`,
  noDecision: (got: unknown) => `the store gave ${show(got)} for a reservation, wants a decision`,
  timedOut: (name: string, timeoutMs: number) => `limit '${name}' lets nothing pass within ${timeoutMs} ms`,
  neverFits: (name: string, cost: number, quota: number) =>
    `limit '${name}' never allows ${counted(cost, 'unit')} at once, wants at most ${quota}`,
  notReservable: (name: string, algo: string, able: readonly string[]) =>
    `limit '${name}' of algo '${algo}' cannot be reserved, wants ${listOf(able, 'or')}`,
  notHeld: (name: string, algo: string, able: readonly string[]) =>
    `limit '${name}' of algo '${algo}' gives no lease to hold, wants algo ${listOf(able.map(quoted), 'or')}`,
  onlyHeld: (name: string, algo: string, what: string) =>
    `limit '${name}' of algo '${algo}' cannot be ${what}; release its leases instead`,
  wrongActual: (got: unknown) => `the actual cost is ${show(got)}, wants a whole number >= 0`,
  wrongDuration: (option: string, got: unknown) =>
    `${option} is ${show(got)}, wants ${DURATION_FORM}, at most 1 year${durationHint(got)}`,
  wrongDate: (name: string, got: unknown) => `${name} is ${show(got)}, wants a date`,
  expectedAllowance: ({ limit, retryAfterMs }: ShownDecision) =>
    `the limit '${limit}' refused (it would allow in ${retryAfterMs} ms), wants it to allow`,
  expectedRemaining: ({ limit, remaining }: ShownDecision, wants: number) =>
    `the limit '${limit}' has ${counted(remaining, 'unit')} left, wants ${wants}`,
  expectedRefusal: ({ limit, remaining }: ShownDecision) =>
    `the limit '${limit}' allowed (and has ${counted(remaining, 'unit')} left), wants a refusal`,
  expectedRefusalBy: (name: string, refusing: readonly string[]) =>
    `the limit '${name}' did not refuse, wants it to; refused by ${refusing.map((each) => `'${each}'`).join(', ')}`,
  expectedWait: ({ limit, retryAfterMs }: ShownDecision, wants: number) =>
    `the limit '${limit}' refused for ${retryAfterMs} ms, wants ${wants} ms`,
  wrongSignal: (got: unknown) => `signal is ${show(got)}, wants an AbortSignal`,
  wrongWork: (got: unknown) => `hold got ${show(got)}, wants a function`,
  nothingToSettle: (name: string | undefined) =>
    name === undefined
      ? "settle: no limit of this request has a 'cost' of its own, wants the name of a limit"
      : `settle: the limit '${name}' was not charged for this request`,
  notOfTenant: (got: unknown) => `the options are ${show(got)}, wants { share }, { within } or nothing`,
  noShare: (limit: string) => `limit '${limit}' got a share, wants none: it has no option 'share'`,
  notShared: (location: string, algo: string, got: string) =>
    `${location}: option 'scope' is '${got}', wants 'instance': '${algo}' learns how much one process can take`,
  overloaded: () => 'Too busy, try again later',
  closed: () => 'the app is shutting down',
  resends: () =>
    'redis: the client resends commands after its connection breaks, so a check can be charged twice, and it has no duplicate() for a ' +
    'separate connection; make it with { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 }, or give its options instead',
  storeTimeout: (timeoutMs: number) => `the store did not answer within ${timeoutMs} ms`,
  storeNotReady: (status: string, error?: string) =>
    `Redis is not connected (status '${status}')${error === undefined ? '' : `: ${error}`}`,
  slotMoving: (slot: number, said: string, reason: string) =>
    `slot ${slot} of the Cluster is being moved (${said}): ${reason}`,
  slotFailing: (slot: number, node: string, reason: string) =>
    `slot ${slot} on node ${node} of the store failed, so each limit of its keys does what its 'onStoreError' says: ${reason}`,
  slotRecovered: (slot: number) => `slot ${slot} of the store answers again`,
  connectionLost: (server?: string) =>
    `the connection to Redis${server === undefined ? '' : ` (${server})`} was lost before it answered`,
  storeBroken: () => 'Redis failed repeatedly and is not asked for the moment',
  storeFailed: (reason: string) =>
    `the store failed: ${reason}` +
    (LACKS_A_RIGHT.test(reason) ? ' (what a user of Redis needs: docs/guides/redis-users.md)' : ''),
  noDecisions: (got: unknown, entries: number) =>
    `the store answered ${show(got)} to a check, wants a list of ${entries} decisions`,
  noReply: (got: unknown) => `the script replied ${show(got)}, which is unexpected`,
  wrongReply: (at: number, got: unknown) => `the script's reply holds ${show(got)} at ${at}, which is unexpected there`,
  wrongPatch: (location: string, got: unknown, own: readonly string[]) =>
    `${location}: the patch is ${show(got)}, wants an object of at least one of ${own.join(', ')}`,
  unchangeable: (location: string, option: string, own: readonly string[]) =>
    `${location}: option '${option}' cannot be changed while the app runs, wants only ${own.join(', ')}`,
  /** `choosesByRequest`: functions find limits. */
  unnamedLimit: (location: string, name: unknown, known: readonly string[], choosesByRequest: boolean) =>
    `${location}: got the name ${show(name)}${meant(name, known)}, wants a limit of 'define', 'forFeature' or 'limits' with a 'name': ` +
    (known.length > 0 ? known.map((each) => `'${each}'`).join(', ') : 'there is none') +
    (choosesByRequest ? '; a function reaches these if it returns their names instead of limits of its own' : ''),
  otherOfName: (location: string, name: string, defined: string) =>
    `${location}: the limit '${name}' has the name of another, in ${defined}, and changes by that name do not reach it; ` +
    `wants the name alone ('${name}') to use that limit, or another name`,
  notARecord: (got: string) => `it is ${show(got)}, which is not a record of an override`,
  overrideIgnored: (kind: string, name: string, key: string, reason: string) =>
    key === ''
      ? `the changed ${kind} of limit '${name}' is ignored, and its configured one holds: ${reason}`
      : `the ${kind} of limit '${name}' for the key ${show(key)} is ignored: ${reason}`,
  wrongVersion: (location: string, got: unknown, first: number, last: number) =>
    `${location}: the version is ${show(got)}, wants a whole number from ${first} to ${last}, which the history reaches`,
  unknownChange: (location: string, version: number) =>
    `${location}: change ${version} is of a later release, which alone can undo it`,
  rollbackOvertaken: () => 'others made changes all the time, so nothing was rolled back',
  overrideKeyWants: (longest: number) =>
    "the key of one identity such as 'tenant:acme', or the beginning of keys with a star at the end such as 'tenant:*', of at " +
    `most ${longest} characters; leave it out for all identities`,
  overridesNotWatched: (channel: string, reason: string) =>
    'changes of rates do not arrive at once, but are read every 2 s; to receive them at once, allow this Redis user SUBSCRIBE and ' +
    `PUBLISH on the channel '${channel}': ${reason}`,
  refusalsNotWatched: (channel: string, reason: string) =>
    'refusals are not remembered, since other instances cannot report the units that they give back; allow this Redis user SUBSCRIBE and ' +
    `PUBLISH on the channel '${channel}', or set 'refusalCache: false': ${reason}`,
  overridesUnreadable: (reason: string) => `changed rates cannot be read, so the known ones hold: ${reason}`,
  noQuestion: (location: string, got: unknown) =>
    `${location}: got ${show(got)}, wants { limit, key }, { controller, handler, key }, or the ExecutionContext of a request`,
  unknownController: (location: string, got: string, known: readonly string[]) =>
    `${location}: option 'controller' is ${show(got)}, wants a class with routes: ` +
    (known.length > 0 ? known.join(', ') : 'there is none'),
  sameController: (location: string, got: string) =>
    `${location}: option 'controller' is ${show(got)}, which is the name of several classes, wants the class itself`,
  unknownHandler: (location: string, controller: string, got: string, known: readonly string[]) =>
    `${location}: option 'handler' is ${show(got)}, wants a route of ${controller}: ` +
    (known.length > 0 ? known.join(', ') : 'there is none'),
  clockUnsettled: () => "the server's clock and the calendar window did not settle after 3 tries",
} as const;
