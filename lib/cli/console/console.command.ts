import { withoutSecrets } from '../../engine/util/without-secrets.js';
import { once } from 'node:events';
import type { INestApplication } from '@nestjs/common';
import { cliMessages } from '../../engine/errors/messages/cli.js';
import { reasonOf } from '../../engine/util/reason-of.js';
import { placesOf, redisOf } from '../app/app-redis.js';
import { withApp } from '../app/operation.js';
import { readPlace, type RedisPlace } from '../app/place.js';
import { isWithoutHome } from '../app/region-role.js';
import { type Command, InputError, UsageError } from '../command.js';
import { type KnownOptions, type ReadArguments, readArguments } from '../options.js';
import { HELP } from './help.js';
import type { ObserverOptions } from './observer-app.js';

const OPTIONS: KnownOptions = {
  redis: { type: 'string' },
  home: { type: 'string' },
  prefix: { type: 'string' },
  timeout: { type: 'string' },
  port: { type: 'string' },
  write: { type: 'boolean' },
  by: { type: 'string' },
  plain: { type: 'boolean' },
};
const HOST = '127.0.0.1';
const USUAL_PREFIX = 'sluice';

/** Serves the console without the app. */
export const consoleCommand: Command = {
  help: HELP,
  async run(args, { stdout }) {
    const read = readArguments(args, OPTIONS);
    if (read.positionals.length > 0)
      throw new UsageError(cliMessages.extraArgument(withoutSecrets(read.positionals[0]), []));
    const place = readPlace(read, process.env, { name: undefined, optional: true }) as RedisPlace;
    const port = portOf(read);
    const by = read.values.get('by');
    const writes = read.switches.has('write');
    if (writes && (by === undefined || by === '')) {
      throw new UsageError(cliMessages.missingOption('by', "who makes the changes, beside '--write'"));
    }
    const { createObserver, readPublished } = await import('./observer-app.js');
    const { published, places } = await withApp(place, false, async (app) => ({
      published: await readPublished(redisOf(app).redis),
      places: placesOf(app),
    }));
    const prefix = place.prefix ?? USUAL_PREFIX;
    const { role } = places;
    if (role.unread !== undefined) throw new InputError(role.unread);
    if (published === undefined) {
      throw new InputError(
        role.isHome && !role.isRegion ? cliMessages.publishedInRegions(prefix) : cliMessages.noPublishedLimits(prefix),
      );
    }
    const isWithout = isWithoutHome(role, places.home);
    const { app, link } = await serve(createObserver, {
      place,
      published,
      role,
      by: writes ? by : undefined,
      isPlain: read.switches.has('plain'),
      port,
    });
    const hint = isWithout ? `${cliMessages.consoleWithoutHome()}\n` : '';
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

async function serve(
  create: (options: ObserverOptions) => Promise<{ app: INestApplication; token: string }>,
  { port, ...options }: ObserverOptions & { readonly port: number },
): Promise<{ app: INestApplication; link: string }> {
  let app: INestApplication | undefined;
  try {
    const observer = await create(options);
    ({ app } = observer);
    await app.listen(port, HOST);
    return { app, link: `${(await app.getUrl()).replace(/\/$/, '')}/?token=${observer.token}` };
  } catch (error) {
    await app?.close();
    if (error instanceof InputError) throw error;
    throw new InputError(cliMessages.unservable(reasonOf(error)));
  }
}
