import { cliMessages } from '../../engine/errors/messages/cli.js';
import type { Explanation } from '../../nest/explain/explanation.js';
import { formatExplanation } from '../../nest/explain/format.js';
import { type Command, UsageError } from '../command.js';
import { printableJson } from '../../engine/util/printable.js';
import type { LimitRegistry } from '../../app/rules/limit-registry.js';
import { placesOf } from '../app/app-redis.js';
import type { Place } from '../app/place.js';
import { isWithoutHome } from '../app/region-role.js';
import { assertCountsHere, assertHasHome } from '../app/used-names.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { addressesOf } from '../../storage/redis/store-error.js';
import { startApp, whyNotConnected, type StartedApp } from '../app/started-app.js';
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
    if ('file' in place) return await app.service.explain(question);
    const places = placesOf(app);
    const named = app.provided<LimitRegistry>('LimitRegistry')?.named ?? [];
    const limit = named.find(({ rule }) => 'limit' in question && rule.name === question.limit)?.limit;
    if (limit !== undefined) assertHasHome(places, limit);
    const explanation = await app.service.explain(question);
    if (explanation.unread !== undefined) {
      const { redis } = places.own;
      const reason = await whyNotConnected(redis.client);
      return reason === undefined
        ? explanation
        : { ...explanation, unread: redisMessages.unreachable(addressesOf(redis.client), reason) };
    }
    if (limit !== undefined) await assertCountsHere(places, limit);
    return isWithoutHome(places.role, places.home) ? withoutChanges(explanation) : explanation;
  } catch (error) {
    // The app may have the class from another copy of the package.
    if (error instanceof Error && error.name === 'RateLimitConfigError') throw new UsageError(error.message);
    throw error;
  } finally {
    await app.close();
  }
}

/** An explanation of counters alone: another rate or mode may hold, or a list decide. */
function withoutChanges({ limits, ...explanation }: Explanation): Explanation {
  const reason = cliMessages.changesUnknown();
  return {
    ...explanation,
    outcome: { verdict: 'unknown', refusedBy: [], retryAfterMs: null, delayMs: 0, reason },
    limits: limits.map(({ decision: _, ...limit }) => ({ ...limit, reason })),
    unread: cliMessages.changesAtHome(),
  };
}
