/**
 * Every message of the package, by topic, except those of features and of variants of algorithms, which stand in the folder of each. Code imports the file
 * of its topic: to load all of them here would cost each app the messages of entry points that it does not use.
 */
export { aiMessages } from './ai.js'; // calls of language models
export { askMessages } from './ask.js'; // limits that calls to others' APIs and jobs name in their options
export { bullmqMessages } from './bullmq.js'; // jobs of BullMQ
export { byRequestMessages } from './by-request.js'; // limits that functions and classes find by the request
export { cliMessages } from './cli.js'; // the command line program
export { consoleMessages } from './console.js'; // the console
export { messages } from './general.js'; // options, start-up, requests, stores, rates that change, tests; what has no topic of its own
export { graphqlMessages } from './graphql.js'; // GraphQL by operation
export { holdMessages } from './hold.js'; // `hold` and `onLapse`, and amounts of money
export { hookMessages } from './hook.js'; // hooks that fail
export { initMessages } from './init.js'; // `nestjs-sluice init`
export { keyMessages } from './key.js'; // keys that a limit never counts by
export { listMessages } from './list.js'; // allow and deny lists
export { methodMessages } from './methods.js'; // `@Limited`
export { migrateMessages } from './migrate.js'; // `nestjs-sluice migrate`
export { optionMessages } from './options.js'; // options of limits: wrong values, unknown names, what does not go together
export { outboundMessages } from './outbound.js'; // calls to others' APIs
export { ownStoreMessages } from './own-store.js'; // stores of apps, and the suite that tests them
export { planMessages } from './plan.js'; // `anchor`, and prepaid units
export { policyMessages } from './policy.js'; // policies: what is wrong in one, and what happens to its versions
export { priorityMessages } from './priority.js'; // `priority` and `reserveFor`
export { redisMessages } from './redis.js'; // connections to Redis that are not usable
export { regionMessages } from './regions.js'; // `regions`, and their home
export { replicaMessages } from './replica.js'; // `replicas`
export { socketMessages } from './sockets.js'; // WebSockets: handshakes, connections, frames
export { upToMessages } from './up-to.js'; // `upTo`
export { waitMessages } from './wait.js'; // calls that wait for units
export { withinMessages } from './within.js'; // `within`
