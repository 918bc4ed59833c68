import { reasonOf } from '../../engine/errors/reasons.js';
import { once } from 'node:events';
import type { INestApplication } from '@nestjs/common';
import { readPublished } from '../../console/telemetry/published-limits.js';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { placesOf, redisOf } from '../app/started-app.js';
import { causeOf, withApp } from '../app/operation.js';
import { readPlace, REDIS_OPTIONS, type RedisPlace } from '../app/place.js';
import { isWithoutHome } from '../app/app-redis.js';
import { argumentsOf, type Command, InputError, type ReadArguments, UsageError } from '../command.js';
import type { ObserverOptions } from './observer-app.js';

const HOST = '127.0.0.1';
const USUAL_PREFIX = 'sluice';

export const consoleCommand: Command = {
  usage: ['--redis <url> [--home <url>] [--prefix <prefix>] [--write --by <name>]'],
  about: `Serves an app's console without the app, for example while none of its instances runs. It
reads the limits that instances with a console have published on Redis in the last week,
and prints a link with a token. The server listens on this machine only. It counts nothing
and, without --write, changes nothing. Ctrl+C ends it.`,
  options: {
    ...REDIS_OPTIONS,
    port: { value: '<port>', help: 'The port on 127.0.0.1 (default: a free port)' },
    write: { help: 'Lets everyone who has the link make changes' },
    by: { value: '<name>', help: 'Who makes the changes, for the log; required with --write' },
    plain: { help: 'Shows identities as plain text, not as hashes' },
  },
  notes: `If the app has 'regions', --redis is the Redis of one region. Without --home, the console
neither shows nor changes rates, modes and lists, and cannot look up limits of scope
'world'. With --home it can do both, without being an instance of a region.

Limits that count in the app's processes, such as adaptive ones, and limits that are
declared on routes are shown, but cannot be looked up.`,
  exits: { 1: 'Redis cannot be reached, or has no published limits with this prefix' },
  async run(read, { stdout }) {
    argumentsOf(read);
    const place = readPlace(read, { name: undefined, optional: true }) as RedisPlace;
    const port = portOf(read);
    const by = read.values.get('by');
    const writes = read.switches.has('write');
    if (writes && (by === undefined || by === '')) {
      throw new UsageError(cliMessages.missingOption('by', "who makes the changes, together with '--write'"));
    }
    causeOf(read);
    const { published, role } = await withApp(place, false, async (app) => ({
      published: await readPublished(redisOf(app)),
      role: placesOf(app)!.role,
    }));
    const prefix = place.prefix ?? USUAL_PREFIX;
    if (role.unread !== undefined) throw new InputError(role.unread);
    if (published === undefined) {
      throw new InputError(
        role.isHome && !role.isRegion ? cliMessages.publishedInRegions(prefix) : cliMessages.noPublishedLimits(prefix),
      );
    }
    const { app, link } = await serve({
      place,
      published,
      role,
      by: writes ? by : undefined,
      isPlain: read.switches.has('plain'),
      port,
    });
    const hint = isWithoutHome(role, place.home) ? `${cliMessages.consoleWithoutHome()}\n` : '';
    stdout.write(`The console of '${prefix}'${writes ? '' : ', read-only'}: ${link}\n${hint}Ctrl+C ends it.\n`);
    const interrupted = new AbortController();
    await Promise.race(
      (['SIGINT', 'SIGTERM'] as const).map((signal) => once(process, signal, { signal: interrupted.signal })),
    );
    interrupted.abort();
    await app.close();
    return 0;
  },
};

function portOf({ values }: ReadArguments): number {
  const port = values.get('port') ?? '0';
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new UsageError(cliMessages.wrongOption('port', port, 'a port from 0 to 65535'));
  }
  return Number(port);
}

async function serve({ port, ...options }: ObserverOptions & { readonly port: number }) {
  const { createObserver } = await import('./observer-app.js');
  let app: INestApplication | undefined;
  try {
    const observer = await createObserver(options);
    ({ app } = observer);
    await app.listen(port, HOST);
    return { app, link: `${(await app.getUrl()).replace(/\/$/, '')}/?token=${observer.token}` };
  } catch (error) {
    await app?.close();
    if (error instanceof InputError) throw error;
    throw new InputError(cliMessages.unservable(reasonOf(error)));
  }
}
