import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { cliMessages, routeMessages } from '../../engine/errors/messages/cli.js';
import { counted, routeAndMethod, shownRoute } from '../../engine/errors/wording.js';
import { columns, printable, printableJson } from '../../engine/util/printable.js';
import { VERSION } from '../../storage/telemetry/version.js';
import { type Command, InputError, UsageError, writeOutput } from '../command.js';
import { type LocatedRoute, Locator } from './locate.js';
import { previewApp } from './preview-app.js';

const UNLIMITED = 1;
/** Where builds of Nest projects are, in this order. */
const ENTRIES = ['main', 'src/main', 'app.module', 'src/app.module'].flatMap((name) =>
  ['js', 'mjs', 'cjs'].map((ending) => `dist/${name}.${ending}`),
);

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
    if (sarif !== undefined) await writeOutput(sarif, `${printableJson(sarifOf(routes, VERSION))}\n`);
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

/** The routes as text: one line each, with its limits below. */
function tableOf(routes: readonly LocatedRoute[]): string {
  const rows = columns(routes.map(rowOf), [0, 1, 2]);
  const lines = rows.flatMap((row, index) => [row, ...limitsOf(routes[index]!)]);
  const unlimited = routes.filter((route) => route.unlimited).length;
  const summary = `${counted(routes.length, 'route')}, ${unlimited} without a limit`;
  return `${[...lines, ...(lines.length > 0 ? [''] : []), summary].join('\n')}\n`;
}

function placeOf(route: LocatedRoute): string {
  const { file, line } = route;
  const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}: `;
  return printable(`${place}${routeAndMethod(route)} has no limit`, Infinity);
}

function rowOf(route: LocatedRoute): string[] {
  const { kind, controller, handler, unlimited } = route;
  return [kind, printable(shownRoute(route), 100), `${controller}.${handler}${unlimited ? '  NO LIMIT' : ''}`];
}

function limitsOf({ limits, functions, skips, because }: LocatedRoute): string[] {
  const texts = [
    ...limits.map(({ name, key, phase, mode, declared, definition }) =>
      [
        `${name}: key ${key}`,
        phase === undefined ? undefined : `phase ${phase}`,
        mode === undefined || mode === 'enforce' ? undefined : `mode ${mode}`,
        definition === undefined ? declared : `${declared}, ${definition}`,
      ]
        .filter((part) => part !== undefined)
        .join('; '),
    ),
    ...functions.map((place) => `limits by the request: ${place}`),
    ...(skips === undefined ? [] : [because === undefined ? skips : `${skips}: ${because}`]),
  ];
  return texts.map((text) => `${' '.repeat(9)}${printable(text, Infinity)}`);
}

const RULE = 'route-without-rate-limit';

/** The unlimited routes as SARIF 2.1.0, which code scanning reads. */
function sarifOf(routes: readonly LocatedRoute[], version: string): object {
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'nestjs-sluice',
            version,
            rules: [
              {
                id: RULE,
                name: 'RouteWithoutRateLimit',
                shortDescription: { text: 'A route has no rate limit' },
                help: { text: "Add @RateLimit, or @SkipRateLimit({ because: '…' }) if it needs none." },
                defaultConfiguration: { level: 'warning' },
                properties: { tags: ['security', 'external/cwe/cwe-770'], 'security-severity': '7.5' },
              },
            ],
          },
        },
        results: routes.filter(({ unlimited }) => unlimited).map(resultOf),
      },
    ],
  };
}

function resultOf(route: LocatedRoute): object {
  const { controller, handler, file, line } = route;
  const region = line === undefined ? {} : { region: { startLine: line } };
  const uri = file?.split(/[\\/]/).map(encodeURIComponent).join('/');
  const physical = file === undefined ? {} : { physicalLocation: { artifactLocation: { uri }, ...region } };
  return {
    ruleId: RULE,
    level: 'warning',
    message: { text: `${routeAndMethod(route)} has no rate limit` },
    locations: [
      { ...physical, logicalLocations: [{ fullyQualifiedName: `${controller}.${handler}`, kind: 'member' }] },
    ],
    partialFingerprints: { 'route/v1': `${controller}.${handler} ${route.route}` },
  };
}
