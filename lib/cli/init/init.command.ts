import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { initMessages } from '../../engine/errors/messages/cli.js';
import { printableLines } from '../../engine/util/printable.js';
import { argumentsOf, type Command, InputError } from '../command.js';
import { finished } from '../migrate/imports.js';
import { Project } from '../migrate/project.js';
import { Formatter, jsonOf, loadCompiler, withParents } from '../migrate/project-tools.js';
import { unifiedDiff } from '../migrate/report.js';
import type { Source } from '../migrate/source.js';
import { addExample, addModule, addTestHelper, controllerFile } from './add-limits.js';

const PACKAGE = 'nestjs-sluice';

/** Exceeds the example limit. */
const TRY =
  "  for i in 1 2 3 4 5 6; do curl -so /dev/null -w '%{http_code}\\n' localhost:3000; done  # the last one: 429";

interface Change {
  readonly source: Source;
  readonly what: string;
  /** True if it adds the example limit to a route. */
  readonly isExample: boolean;
}

export const initCommand: Command = {
  usage: ['[options]'],
  about: `Adds to the Nest project in this folder: the module, which counts on the Redis of the
variable REDIS_URL, or in the process if it is not set; an example limit on the first
controller; and the helper that turns limits off in e2e tests. Existing code is left
unchanged. 'nest add nestjs-sluice' does the same.

Installs nestjs-sluice with the project's package manager (npm, pnpm or yarn) if it is
missing.`,
  options: {
    module: {
      value: '<file>',
      help: 'The file of the root module (default: app.module.ts in the source folder of nest-cli.json)',
    },
    'dry-run': { help: 'Prints a diff; changes and installs nothing' },
    'skip-install': { help: 'Installs nothing; prints what to install' },
  },
  exits: { 1: "this isn't a Nest project, or it could not be changed" },
  async run(read, { stdout }) {
    argumentsOf(read);
    const { switches, values } = read;
    const folder = process.cwd();
    const files = projectFiles(folder, values.get('module'));
    const project = new Project(loadCompiler(folder), folder, []);
    const changes = changesOf(files, project);
    const isDry = switches.has('dry-run');
    const formatter = new Formatter(folder);
    for (const { source } of changes) {
      const text = await formatter.format(source.path, source.text, finished(source));
      if (isDry) stdout.write(unifiedDiff(source.shown, source.text, text));
      else writeFileSync(source.path, project.inOwnLines(source.path, text));
    }
    const lines = changes.map(({ source, what }) => `  ${source.shown}: ${what}`);
    if (changes.length === 0) lines.push('The project has limits already: nothing is changed.');
    else lines.unshift(isDry ? 'Would change:' : 'Changed:');
    stdout.write(printableLines(lines));
    const install = installerOf(folder);
    const isMissing = !isInstalled(folder);
    const leavesInstall = isDry || switches.has('skip-install');
    if (isMissing && !leavesInstall && !runInstaller(install, folder)) {
      throw new InputError(initMessages.notInstalled(`${install} ${PACKAGE}`));
    }
    stdout.write(next(files, install, isMissing && leavesInstall, changes));
    return 0;
  },
};

function changesOf(files: ProjectFiles, project: Project): Change[] {
  const changes: Change[] = [];
  const add = (path: string, change: (source: Source) => string | undefined, isExample = false) => {
    const source = project.sourceAt(path);
    const what = change(source);
    if (what !== undefined) changes.push({ source, what, isExample });
    return source;
  };
  const root = add(files.module, (source) =>
    addModule(source) ? 'RateLimitModule, with a limit for every route' : undefined,
  );
  const controller = controllerFile(root);
  if (controller !== undefined) add(controller, exampleOf, true);
  for (const spec of files.specs) {
    add(spec, (source) => (addTestHelper(source) ? 'RateLimitTesting, which switches limits off' : undefined));
  }
  return changes;
}

function exampleOf(source: Source): string | undefined {
  const method = addExample(source);
  return method === undefined ? undefined : `a limit of its own for ${method}()`;
}

/** Returns true if the project can import the package, also from a parent folder. */
function isInstalled(folder: string): boolean {
  const places = createRequire(join(folder, 'package.json')).resolve.paths(PACKAGE) ?? [];
  return places.some((place) => existsSync(join(place, PACKAGE, 'package.json')));
}

function next({ dependencies }: ProjectFiles, install: string, isMissing: boolean, changes: readonly Change[]): string {
  const hasClient = dependencies.has('ioredis') || dependencies.has('redis');
  // Other routes have other limits.
  const hasExample = changes.some(({ isExample }) => isExample);
  const lines = [
    '',
    'Next:',
    ...(isMissing ? [`  ${install} ${PACKAGE}`] : []),
    '  npm run start',
    ...(hasExample ? [TRY] : []),
    ...(hasClient ? [] : [`  ${install} ioredis  # to count on Redis: set REDIS_URL`]),
  ];
  return `${lines.join('\n')}\n`;
}

const INSTALLERS: Readonly<Record<string, string>> = {
  'pnpm-lock.yaml': 'pnpm add',
  'yarn.lock': 'yarn add',
  'package-lock.json': 'npm install',
};

/** The command of the project's package manager, by the nearest lock file. In a workspace, that is in a parent folder. */
function installerOf(folder: string): string {
  const locks = withParents(folder).flatMap((at) =>
    Object.keys(INSTALLERS).filter((name) => existsSync(join(at, name))),
  );
  return INSTALLERS[locks[0] ?? 'package-lock.json']!;
}

/** Installs the package. Returns true if that succeeded. */
function runInstaller(install: string, folder: string): boolean {
  const [program = '', verb = ''] = install.split(' ');
  const { status } = spawnSync(program, [verb, PACKAGE], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  return status === 0;
}

interface ProjectFiles {
  readonly module: string;
  readonly specs: readonly string[];
  /** The names of its dependencies of any kind. */
  readonly dependencies: ReadonlySet<string>;
}

const KINDS = ['dependencies', 'devDependencies', 'peerDependencies'];
const E2E = /\.e2e[-.](?:spec|test)\.ts$/;

/** Finds the files of a project. Throws `InputError` if there is none. */
function projectFiles(folder: string, given: string | undefined): ProjectFiles {
  const manifest = jsonOf(join(folder, 'package.json'));
  const dependencies = new Set(KINDS.flatMap((kind) => Object.keys((manifest?.[kind] as object | undefined) ?? {})));
  if (!dependencies.has('@nestjs/core')) throw new InputError(initMessages.noProject(folder));
  const sourceRoot = jsonOf(join(folder, 'nest-cli.json'))?.['sourceRoot'];
  const root = typeof sourceRoot === 'string' ? sourceRoot : 'src';
  const module = join(folder, given ?? join(root, 'app.module.ts'));
  if (!existsSync(module)) throw new InputError(initMessages.noModule(relative(folder, module).replaceAll(sep, '/')));
  return { module, specs: [...specsIn(join(folder, 'test')), ...specsIn(dirname(module))], dependencies };
}

function specsIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => E2E.test(file) && !file.includes('node_modules')).map((file) => join(folder, file));
}
