import { cliMessages } from '../../engine/errors/messages/cli.js';
import type { Explanation } from '../../nest/explain/explanation.js';
import { formatExplanation } from '../../nest/explain/format.js';
import { argumentsOf, type Command, type ReadArguments, refuseOptions, UsageError } from '../command.js';
import { printableJson } from '../../engine/util/printable.js';
import { withStarted } from '../app/operation.js';
import { limitNamed, placesOf, routesOf, type StartedApp, whyNotConnected } from '../app/started-app.js';
import { LIMIT_HELP, PLACE_OPTIONS, readPlace } from '../app/place.js';
import { isWithoutHome } from '../app/app-redis.js';
import { assertCountsHere, assertHasHome, isTouched, noteElsewhere } from '../app/used-names.js';
import { redisMessages } from '../../engine/errors/messages/redis.js';
import { addressesOf } from '../../storage/redis/errors.js';

const UNREAD = 1;
const OF_ROUTES = ['controller', 'handler'];

export const explainCommand: Command = {
  usage: [
    '--redis <url> --limit <limit> --name <name> --key <key>',
    '--module <file> --name <name> --key <key>',
    '--module <file> --controller <class> --handler <method> [--key <key>...]',
  ],
  about: `Explains what limits do to a request: which limits apply, where they are configured, which
changes are in force, how many units are left, and whether the request would be allowed.
Uses no units and writes nothing to Redis.

With --redis, it explains one limit of 'define' as --limit describes it, with the changes
and lists that Redis keeps. It knows neither the module's options nor a policy. In a
region, the home keeps these changes: without --home they are reported as unknown.

With --module, it explains the app itself: it starts the app without listening, runs all
that its modules do at start-up, and closes it again.`,
  options: {
    ...PLACE_OPTIONS,
    limit: { value: '<limit>', help: LIMIT_HELP },
    name: { value: '<name>', help: 'The name of the limit' },
    controller: { value: '<class>', help: 'The class of a route' },
    handler: { value: '<method>', help: 'The method of a route' },
    key: {
      value: '<key>',
      repeats: true,
      help: 'A key such as tenant:acme or ip:203.0.113.7; for a route, one per kind of key that its limits use',
    },
    cost: { value: '<units>', help: 'The units that the request takes (default: 1)' },
    share: {
      value: '<tenant>',
      help: 'The tenant, for limits whose units tenants share (default: explains the total of all tenants)',
    },
    ip: {
      value: '<address>',
      help: 'The address of the client, for lists of addresses. For a route, it is the first address among the keys',
    },
    json: { help: 'Prints JSON' },
  },
  exits: { 1: 'the app cannot be started, or Redis or the home cannot be read' },
  async run(read, { stdout, stderr }) {
    const { place, question, json } = readSettings(read);
    const note = (text: string) => void stderr.write(`note: ${text}\n`);
    const explanation = await withStarted(place, false, (app) => explained(app, question, note));
    stdout.write(json ? `${printableJson(explanation)}\n` : formatExplanation(explanation));
    return explanation.unread === undefined ? 0 : UNREAD;
  },
};

type Question = ReturnType<typeof questionOf>;

async function explained(app: StartedApp, question: Question, note: (text: string) => void): Promise<Explanation> {
  const limit = 'limit' in question ? limitNamed(app, question.limit)?.limit : undefined;
  const places = placesOf(app);
  if (places === undefined) {
    if ('limit' in question && limit === undefined) {
      const routes = routesOf(app, question.limit);
      if (routes.length > 0) throw new UsageError(cliMessages.explainsRoute(question.limit, routes));
    }
    return app.service.explain(question);
  }
  if (limit !== undefined) assertHasHome(places, limit);
  const explanation = await app.service.explain(question);
  if (explanation.unread !== undefined) {
    const { client } = places.own;
    const reason = await whyNotConnected(client);
    if (reason === undefined) return explanation;
    return { ...explanation, unread: redisMessages.unreachable(addressesOf(client), reason) };
  }
  if (limit !== undefined) {
    await assertCountsHere(places, limit);
    const isUnused = !explanation.limits.some(isTouched);
    const news = isUnused ? await noteElsewhere(places, limit) : undefined;
    if (news !== undefined) note(news);
  }
  return isWithoutHome(places.role, places.home) ? withoutChanges(explanation) : explanation;
}

/** An explanation of counters alone, since the rate and mode may be changed, or a list may decide. */
function withoutChanges({ limits, ...explanation }: Explanation): Explanation {
  const reason = cliMessages.changesUnknown();
  return {
    ...explanation,
    outcome: { verdict: 'unknown', refusedBy: [], retryAfterMs: null, delayMs: 0, reason },
    limits: limits.map(({ decision: _, ...limit }) => ({ ...limit, reason })),
    unread: cliMessages.changesAtHome(),
  };
}

function readSettings(read: ReadArguments) {
  argumentsOf(read);
  if (!read.values.has('module')) refuseOptions(read, OF_ROUTES, "explanations of an app, with '--module'");
  const place = readPlace(read, { name: read.values.get('name') });
  const name = 'file' in place ? read.values.get('name') : place.limit?.name;
  return { place, question: questionOf(read, name), json: read.switches.has('json') };
}

function questionOf({ values, lists }: ReadArguments, name: string | undefined) {
  const keys = lists.get('key') ?? [];
  const share = values.get('share');
  if (share === '') throw new UsageError(cliMessages.wrongOption('share', share, 'a tenant'));
  const asked = {
    ...(values.has('cost') && { cost: units(values.get('cost')!) }),
    ...(share !== undefined && { share }),
  };
  const [controller, handler] = OF_ROUTES.map((option) => values.get(option));
  if (controller !== undefined || handler !== undefined) {
    if (values.has('name')) throw new UsageError(cliMessages.optionWithout('name', 'limits, not for routes'));
    if (values.has('ip')) throw new UsageError(cliMessages.optionWithout('ip', 'limits, not for routes'));
    if (controller === undefined) throw new UsageError(cliMessages.missingOption('controller', 'the name of a class'));
    if (handler === undefined) throw new UsageError(cliMessages.missingOption('handler', 'the name of a method'));
    return { controller, handler, ...(keys.length > 0 ? { key: keys } : {}), ...asked };
  }
  if (name === undefined) {
    throw new UsageError(cliMessages.missingOption('name', "the name of a limit, or '--controller' and '--handler'"));
  }
  const [key, ...others] = keys;
  if (key === undefined) throw new UsageError(cliMessages.missingOption('key', 'an identity such as tenant:acme'));
  if (others.length > 0) throw new UsageError(cliMessages.optionTwice('key'));
  const ip = values.get('ip');
  return { limit: name, key, ...asked, ...(ip === undefined ? {} : { ip }) };
}

function units(text: string): number {
  const cost = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(cost)) {
    throw new UsageError(cliMessages.wrongOption('cost', text, 'a whole number >= 0'));
  }
  return cost;
}
