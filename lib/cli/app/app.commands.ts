/** The commands that look at the counters of an app and change them. What they have in common is loaded as one file. */
export { consoleCommand } from '../console/console.command.js';
export { explainCommand } from '../explain/explain.command.js';
export { blockCommand, resetCommand, unblockCommand } from '../keys/key.commands.js';
export { allowCommand, denyCommand, unlistCommand } from '../lists/list.commands.js';
export { ratesCommand } from '../rates/rates.command.js';
