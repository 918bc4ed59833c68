/**
 * Every message of the package, by topic, except those of features and of variants of algorithms, which are in their own folders. Code
 * imports the file of its topic: loading all of them would cost each app the messages of entry points that it does not use.
 */
export { aiMessages } from './ai.js'; // language model calls
export { askMessages } from './ask.js'; // limits in the options of outgoing API calls and jobs
export { bullmqMessages } from './bullmq.js'; // BullMQ jobs
export { byRequestMessages } from './by-request.js'; // functions and classes that find limits per request
export { cliMessages } from './cli.js'; // the command line program
export { consoleMessages } from './console.js'; // the console
export { messages } from './general.js'; // options, start-up, requests, stores, changes of rates, tests; everything without a specific topic
export { graphqlMessages } from './graphql.js'; // GraphQL by operation
export { holdMessages } from './hold.js'; // `hold` and `onLapse`, and amounts of money
export { hookMessages } from './hook.js'; // hooks that fail
export { initMessages } from './init.js'; // `nestjs-sluice init`
export { keyMessages } from './key.js'; // keys that a limit never has
export { listMessages } from './list.js'; // allow and deny lists
export { methodMessages } from './methods.js'; // `@Limited`
export { migrateMessages } from './migrate.js'; // `nestjs-sluice migrate`
export { optionMessages } from './options.js'; // options of limits: invalid values, unknown names, invalid combinations
export { outboundMessages } from './outbound.js'; // outgoing API calls
export { ownStoreMessages } from './own-store.js'; // stores of apps, and the suite that tests them
export { planMessages } from './plan.js'; // `anchor`, and prepaid units
export { policyMessages } from './policy.js'; // policies: their errors, and changes of their versions
export { priorityMessages } from './priority.js'; // `priority` and `reserveFor`
export { redisMessages } from './redis.js'; // unusable Redis connections
export { regionMessages } from './regions.js'; // `regions`, and their home region
export { replicaMessages } from './replica.js'; // `replicas`
export { routeMessages } from './routes.js'; // routes without a limit
export { socketMessages } from './sockets.js'; // WebSockets: handshakes, connections, frames
export { throttlerStorageMessages } from './throttler-storage.js'; // the storage for @nestjs/throttler
export { upToMessages } from './up-to.js'; // `upTo`
export { waitMessages } from './wait.js'; // calls that wait for units
export { withinMessages } from './within.js'; // `within`
