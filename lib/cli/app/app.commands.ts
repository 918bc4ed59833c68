/** The commands about the counters of an app: they read or change them, or print how to. Their common code is loaded as one file. */
export { callCommand } from '../call/call.command.js';
export { consoleCommand } from '../console/console.command.js';
export { explainCommand } from '../explain/explain.command.js';
export { blockCommand, resetCommand, unblockCommand } from '../keys/key.commands.js';
export { allowCommand, denyCommand, unlistCommand } from '../lists/list.commands.js';
export { ratesCommand } from '../rates/rates.command.js';
export { routesCommand } from '../routes/routes.command.js';
