import type { Explanation } from '../../explain/explanation.js';
import { formatExplanation } from '../../explain/format.js';
import { type Command, UsageError } from '../command.js';
import { printableJson } from '../../util/printable.js';
import { startApp, type StartedApp } from '../app/started-app.js';
import { HELP } from './help.js';
import { type CommandQuestion, readSettings } from './settings.js';

const UNREAD = 1;

/** Explains what limits do to a request. */
export const explainCommand: Command = {
  help: HELP,
  async run(args, { stdout }) {
    const { place, question, json } = readSettings(args, process.env);
    const app = await startApp(place, { changes: false });
    const explanation = await explained(app, question);
    stdout.write(json ? `${printableJson(explanation)}\n` : formatExplanation(explanation));
    return explanation.unread === undefined ? 0 : UNREAD;
  },
};

async function explained(app: StartedApp, question: CommandQuestion): Promise<Explanation> {
  try {
    return await app.service.explain(question);
  } catch (error) {
    // The app may have the class from another copy of the package.
    if (error instanceof Error && error.name === 'RateLimitConfigError') throw new UsageError(error.message);
    throw error;
  } finally {
    await app.close();
  }
}
