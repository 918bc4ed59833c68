import type { Explanation } from '../../explain/explanation.js';
import { formatExplanation } from '../../explain/format.js';
import { type Command, UsageError } from '../command.js';
import { printableJson } from '../../util/printable.js';
import type { LimitRegistry } from '../../rules/limit-registry.js';
import { redisOf } from '../app/app-redis.js';
import type { Place } from '../app/place.js';
import { assertInOneRegion } from '../app/used-names.js';
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
    const explanation = await explained(app, place, question);
    stdout.write(json ? `${printableJson(explanation)}\n` : formatExplanation(explanation));
    return explanation.unread === undefined ? 0 : UNREAD;
  },
};

async function explained(app: StartedApp, place: Place, question: CommandQuestion): Promise<Explanation> {
  try {
    const explanation = await app.service.explain(question);
    if (explanation.unread === undefined && !('file' in place)) await assertCountsHere(app, question);
    return explanation;
  } catch (error) {
    // The app may have the class from another copy of the package.
    if (error instanceof Error && error.name === 'RateLimitConfigError') throw new UsageError(error.message);
    throw error;
  } finally {
    await app.close();
  }
}

/** Without the app, nothing is known of a limit over regions: its counter here would look unused. */
async function assertCountsHere(app: StartedApp, question: CommandQuestion): Promise<void> {
  const named = app.provided<LimitRegistry>('LimitRegistry')?.named ?? [];
  const limit = named.find(({ rule }) => 'limit' in question && rule.name === question.limit)?.limit;
  if (limit !== undefined) await assertInOneRegion(redisOf(app), limit);
}
