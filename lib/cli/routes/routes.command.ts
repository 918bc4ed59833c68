import { existsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { cliMessages, routeMessages } from '../../engine/errors/messages/cli.js';
import { printableJson } from '../../engine/util/printable.js';
import { VERSION } from '../../storage/telemetry/version.js';
import { type Command, InputError, UsageError } from '../command.js';
import { Locator } from './locate.js';
import { previewApp } from './preview-app.js';
import { sarifOf } from './sarif.js';
import { placeOf, tableOf } from './table.js';

const UNLIMITED = 1;
/** Where builds of Nest projects are, in this order. */
const ENTRIES = ['main', 'src/main', 'app.module', 'src/app.module'].flatMap((name) =>
  ['js', 'mjs', 'cjs'].map((ending) => `dist/${name}.${ending}`),
);

/** Lists the routes of an app with their limits. */
export const routesCommand: Command = {
  usage: ['[options] [<file>[#<class>]]'],
  about: `Lists all routes of a built app with the limits that apply: HTTP routes, GraphQL fields,
events of gateways, message patterns, MCP tools and BullMQ jobs.

The file calls NestFactory, as 'dist/main.js' does, or exports a module class. Nest creates
the app in its preview mode: providers other than those of limits are not created, no hook
runs, and nothing connects or listens.`,
  options: {
    'fail-unlimited': { help: 'Fails if a route has neither a limit nor a reason for having none' },
    json: { help: 'Prints JSON' },
    sarif: { value: '<file>', help: 'Writes the routes without a limit to a SARIF file, for code scanning' },
  },
  notes: `Without a file, it reads the first of ${ENTRIES.filter((entry) => entry.endsWith('.js')).join(', ')}.`,
  exits: { 1: "the app cannot be read, or with '--fail-unlimited', a route has no limit" },
  async run({ switches, values, positionals }, { stdout, stderr }) {
    const [given, extra] = positionals;
    if (extra !== undefined) throw new UsageError(cliMessages.extraArgument(extra, ['a file']));
    const { file, className } = entryOf(given);
    const app = await previewApp(file, className);
    const { listRoutes } = await import('../../nest/routes/route-list.js');
    const locator = new Locator(dirname(file));
    const routes = listRoutes(app).map((route) => locator.locate(route));
    const unlimited = routes.filter((route) => route.unlimited);
    if (app.note !== undefined) stderr.write(`${app.note}\n`);
    stdout.write(
      switches.has('json') ? `${printableJson({ routes, unlimited: unlimited.length })}\n` : tableOf(routes),
    );
    const sarif = values.get('sarif');
    if (sarif !== undefined) write(sarif, printableJson(sarifOf(routes, VERSION)));
    if (!switches.has('fail-unlimited') || unlimited.length === 0) return 0;
    for (const route of unlimited) stderr.write(`${placeOf(route)}\n`);
    return UNLIMITED;
  },
};

function entryOf(given: string | undefined): { readonly file: string; readonly className: string | undefined } {
  if (given === undefined) {
    const file = ENTRIES.find((entry) => existsSync(entry));
    if (file === undefined)
      throw new InputError(routeMessages.nothingBuilt(ENTRIES.filter((entry) => entry.endsWith('/main.js'))));
    return { file, className: undefined };
  }
  const [file = '', className] = existsSync(given) ? [given] : given.split('#');
  return { file, className: className === '' ? undefined : className };
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, `${text}\n`);
  } catch (error) {
    throw new InputError(cliMessages.unwritableFile(file, (error as Error).message));
  }
}
