/**
 * Every message of the package, by topic, except those of features and of variants of algorithms, which are in their own folders. Code
 * imports the file of its topic: loading all of them would cost each app the messages of entry points that it does not use.
 */
export { aiMessages } from './ai.js'; // language model calls
export * from './app-code.js'; // functions and classes that find limits per request, hooks that fail, `@Limited`
export { bullmqMessages } from './bullmq.js'; // BullMQ jobs
export * from './calls.js'; // arguments of calls: limits, keys, parents, priorities, waiting, `upTo`, held units, amounts of money
export * from './cli.js'; // the command line program
export { consoleMessages } from './console.js'; // the console
export { messages } from './general.js'; // options, start-up, requests, stores, changes of rates, tests; everything without a specific topic
export { graphqlMessages } from './graphql.js'; // GraphQL by operation
export { optionMessages } from './options.js'; // options of limits: invalid values, unknown names, invalid combinations
export { outboundMessages } from './outbound.js'; // outgoing API calls
export { ownStoreMessages } from './own-store.js'; // stores of apps, and the suite that tests them
export * from './rates.js'; // allow and deny lists, policies, `anchor`, and prepaid units
export * from './redis.js'; // unusable Redis connections, regions and their home, replicas
export { socketMessages } from './sockets.js'; // WebSockets: handshakes, connections, frames
export { throttlerStorageMessages } from './throttler-storage.js'; // the storage for @nestjs/throttler
