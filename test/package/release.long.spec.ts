import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { notesOf, obstacles, withAbsoluteLinks, withRepository } from '../../bundle/release.mjs';
import { ensureBuilt } from '../support/processes/built.js';
import { ownEnvironment, PACKAGE_FOLDER } from '../support/processes/npm.js';

const REPOSITORY = 'https://github.com/acme/sluice';
const read = (file: string): string => readFileSync(join(PACKAGE_FOLDER, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as Record<string, unknown> & { version: string };
const changelog = read('CHANGELOG.md');

interface Step {
  readonly uses?: string;
  readonly run?: string;
}

interface Job {
  readonly permissions?: Record<string, string>;
  readonly strategy?: { readonly matrix: Record<string, string[]> };
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly permissions: Record<string, string>;
  readonly jobs: Record<string, Job>;
}

/** A package of `package-lock.json`. */
interface Locked {
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly resolved?: string;
  readonly engines?: { readonly node?: string };
}

const workflow = (name: string): Workflow => parse(read(`.github/workflows/${name}.yml`)) as Workflow;

describe('the README of a package', () => {
  it('has links that lead somewhere on the site of npm', () => {
    const page = '[a](docs/a.md#b) ![p](docs/p.webp) [c](https://c.example) [d](#d) `[e](e)`\n```\n[f](f)\n```\n';
    expect(withAbsoluteLinks(page, REPOSITORY, 'v1.0.0')).toBe(
      `[a](${REPOSITORY}/blob/v1.0.0/docs/a.md#b) ![p](${REPOSITORY}/raw/v1.0.0/docs/p.webp) ` +
        '[c](https://c.example) [d](#d) `[e](e)`\n```\n[f](f)\n```\n',
    );
  });
});

describe('a manifest', () => {
  it('gets its links from the repository that publishes it', () => {
    const filled = withRepository(manifest, REPOSITORY);
    expect(filled).toMatchObject({
      repository: { type: 'git', url: 'git+https://github.com/acme/sluice.git' },
      homepage: 'https://github.com/acme/sluice#readme',
      bugs: { url: 'https://github.com/acme/sluice/issues' },
    });
    const { repository: _repository, homepage: _homepage, bugs: _bugs, ...rest } = filled;
    expect(rest).toEqual(manifest);
    expect(withRepository(filled, `${REPOSITORY}.git`)).toEqual(filled);
    expect(withRepository(filled, `${REPOSITORY}/`)).toEqual(filled);
  });

  it('keeps a homepage that it has', () => {
    expect(withRepository({ ...manifest, homepage: 'https://sluice.example' }, REPOSITORY)).toMatchObject({
      homepage: 'https://sluice.example',
    });
  });

  it.each([
    undefined,
    '',
    'acme/sluice',
    'http://github.com/acme/sluice',
    'https://github.com',
    'https://a.example/b c',
  ])('takes no links from %p', (url) => {
    expect(() => withRepository(manifest, url)).toThrow('wanted is a URL such as https://github.com/owner/name');
  });

  it('needs all that a published package has', () => {
    const filled = withRepository(manifest, REPOSITORY);
    expect(obstacles(filled, changelog)).toEqual([]);
    expect(obstacles({}, changelog)).toEqual([
      ...[
        'name',
        'version',
        'description',
        'license',
        'author',
        'keywords',
        'repository.url',
        'homepage',
        'bugs.url',
      ].map((field) => `package.json has no ${field}`),
      'CHANGELOG.md says nothing under "## [undefined]"',
    ]);
    expect(obstacles({ ...filled, version: '9.9.9' }, changelog)).toEqual([
      'CHANGELOG.md says nothing under "## [9.9.9]"',
    ]);
    expect(obstacles({ ...filled, author: { name: '' }, keywords: [] }, changelog)).toEqual([
      'package.json has no author',
      'package.json has no keywords',
    ]);
  });

  it('has a page of notes on its version', () => {
    const notes = notesOf(manifest.version, changelog)!;
    expect(notes.length).toBeGreaterThan(1000);
    expect(Buffer.byteLength(notes)).toBeLessThanOrEqual(8 * 1024);
    expect(notesOf('1.0.0', '# Log\n\n## [1.1.0] - today\n\nMore.\n\n## [1.0.0] - before\n\nLess.\n')).toBe('Less.');
    expect(notesOf('2.0.0', '## [1.0.0]\n\nLess.\n')).toBeUndefined();
  });
});

describe('the lock file', () => {
  const { satisfies } = createRequire(import.meta.url)('semver') as {
    satisfies: (version: string, range: string) => boolean;
  };
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
  const locked = Object.entries(packages).filter(([path]) => path !== '');
  /** Of those that `npm ci` would warn of, not those that it would leave out. */
  const unsupportedOn = (node: string) =>
    locked.flatMap(([path, { engines, optional }]) =>
      optional === true || engines?.node === undefined || satisfies(node, engines.node) ? [] : [path],
    );

  it.each(['22.99.0', '24.99.0', '26.99.0'])('has no package that warns on Node %s', (node) => {
    expect(unsupportedOn(node)).toEqual([]);
  });

  it('has only development packages that warn on Node 20', () => {
    const paths = unsupportedOn('20.20.2');
    expect(paths.filter((path) => packages[path]!.dev !== true)).toEqual([]);
    expect(paths.length).toBeLessThanOrEqual(14);
  });

  it('names no registry but that of npm', () => {
    const hosts = locked.flatMap(([, { resolved }]) => (resolved === undefined ? [] : [new URL(resolved).host]));
    expect([...new Set(hosts)]).toEqual(hosts.length === 0 ? [] : ['registry.npmjs.org']);
  });
});

describe('a step of a release', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-release-'));
    for (const file of ['package.json', 'CHANGELOG.md', 'README.md'])
      cpSync(join(PACKAGE_FOLDER, file), join(folder, file));
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  it('refuses to publish without links, names what is missing, and passes once they are filled in', async () => {
    const refused = await step(['check'], folder);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('- package.json has no repository.url\n- package.json has no homepage\n');
    expect(refused.stderr).toContain("- README.md has links that don't work on npm's site\n");
    expect(refused.stderr).toContain('node bundle/release.mjs repository https://github.com/owner/name');
    const runner = { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/sluice' };
    expect(await step(['repository'], folder, runner)).toMatchObject({ code: 0, stderr: '' });
    expect(await step(['check'], folder)).toMatchObject({ code: 0, stderr: '' });
    const readme = readFileSync(join(folder, 'README.md'), 'utf8');
    expect(readme).toContain(`](${REPOSITORY}/raw/v${manifest.version}/docs/picture.webp)`);
    expect(readme).toContain(`(${REPOSITORY}/blob/v${manifest.version}/docs/start.md)`);
    const text = readFileSync(join(folder, 'package.json'), 'utf8');
    expect(JSON.parse(text)).toEqual(withRepository(manifest, REPOSITORY));
    expect(text.replace(/ {2}"homepage".*? {2}\},\n {2}"repository".*? {2}\},\n/s, '')).toBe(read('package.json'));
  });

  it('fills in nothing outside of a workflow without a URL', async () => {
    expect(await step(['repository'], folder, { GITHUB_REPOSITORY: '' })).toMatchObject({ code: 1 });
    expect(readFileSync(join(folder, 'package.json'), 'utf8')).toBe(read('package.json'));
  });

  it('is refused by `npm publish` itself', () => {
    expect(manifest['scripts']).toMatchObject({ prepublishOnly: 'node bundle/release.mjs check' });
  });

  it('lists what is shipped: the dependency, and what is bundled', async () => {
    await ensureBuilt();
    const { code, stdout } = await step(['sbom'], PACKAGE_FOLDER);
    expect(code).toBe(0);
    const bill = JSON.parse(stdout) as { components: { name: string; version: string }[]; metadata: object };
    const bundled = [...read('dist/licenses.txt').matchAll(/^(\S+) (\d+\.\d+\.\d+\S*)$/gm)].map(
      ([, name, version]) => `${name} ${version}`,
    );
    const { version } = JSON.parse(read('node_modules/yaml/package.json')) as { version: string };
    expect(bundled.length).toBeGreaterThan(4);
    const listed = bill.components.map((each) => `${each.name} ${each.version}`);
    expect(listed.toSorted()).toEqual([...bundled, `yaml ${version}`].toSorted());
    expect(stdout).not.toContain('cdx:npm:package:development');
    expect(bill.metadata).toMatchObject({ component: { version: manifest.version } });
  });
});

describe('the workflows', () => {
  it('run the tests on every supported Node, and the package in projects of both versions of Nest', () => {
    const { test, nest } = workflow('ci').jobs;
    const nodes = ['20.19', '22', '24', '26'];
    expect(test!.strategy!.matrix).toEqual({ node: nodes });
    expect(nest!.strategy!.matrix).toEqual({ node: nodes, nest: ['11', '12'] });
    const projects = readdirSync(join(PACKAGE_FOLDER, 'test/package/projects')).filter((name) =>
      name.startsWith('nest-'),
    );
    expect(projects.toSorted()).toEqual(['nest-11', 'nest-12']);
    const { '@nestjs/core': core } = manifest['peerDependencies'] as Record<string, string>;
    expect(core).toBe('^11.0.0 || ^12.0.0');
  });

  it('publish with provenance and a bill of materials, after the tests and the check', () => {
    const { permissions, jobs } = workflow('release');
    const { publish } = jobs;
    const lines = publish!.steps.map(({ run = '' }) => run).join('\n');
    expect(permissions).toEqual({ contents: 'read' });
    expect(publish!.permissions).toEqual({ contents: 'write', 'id-token': 'write' });
    const order = [
      'npm ci',
      'npm run test:all',
      'release.mjs repository',
      'release.mjs check',
      'release.mjs sbom',
      'npm publish',
    ];
    expect(order.map((line) => lines.indexOf(line)).toSorted((a, b) => a - b)).toEqual(
      order.map((line) => lines.indexOf(line)),
    );
    // What the release carries is what npm gets: publishing the folder would build it once more.
    expect(lines).toMatch(
      /npm publish \.\/\*\.tgz --provenance --access public --tag \$\{\{ .*'next' \|\| 'latest' \}\}/,
    );
    expect(lines).toContain('gh release create "$GITHUB_REF_NAME" ./*.tgz ');
  });

  it.each(['ci', 'release'])('of %s use actions at commits, and name only scripts that are there', (name) => {
    const steps = Object.values(workflow(name).jobs).flatMap((job) => job.steps);
    const used = steps.flatMap(({ uses }) => uses ?? []);
    expect(used.filter((action) => !/^actions\/[\w-]+@[0-9a-f]{40}$/.test(action))).toEqual([]);
    const scripts = steps.flatMap(({ run = '' }) =>
      [...run.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script!),
    );
    expect(scripts.filter((script) => !Object.hasOwn(manifest['scripts'] as object, script))).toEqual([]);
  });
});

function step(args: string[], cwd: string, env: Record<string, string> = {}) {
  const file = join(PACKAGE_FOLDER, 'bundle/release.mjs');
  const options = { cwd, env: { ...ownEnvironment(), ...env }, maxBuffer: 2 ** 28 };
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [file, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}
