import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { ownEnvironment, PACKAGE_FOLDER } from '../../support/processes/npm.js';

const SOURCES = [
  'docs',
  'lib',
  'playground',
  'bench/NOTES.md',
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'package.json',
  'tsconfig.base.json',
  'tsconfig.json',
];

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

/** Builds the site, without the API reference, in a copy: VitePress writes beside its configuration, where others read. */
export async function buildSite(base: string): Promise<{ site: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-site-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    for (const name of SOURCES) {
      await cp(join(PACKAGE_FOLDER, name), join(folder, name), { recursive: true, filter: isSource });
    }
    await symlink(join(PACKAGE_FOLDER, 'node_modules'), join(folder, 'node_modules'));
    await run(folder, ['playground/build.mjs']);
    await run(folder, ['node_modules/vitepress/bin/vitepress.js', 'build', 'docs'], { DOCS_BASE: base });
  } catch (error) {
    await remove();
    throw error;
  }
  return { site: join(folder, 'site'), remove };
}

function isSource(path: string): boolean {
  return !/[\\/](?:dist|cache|\.temp)$/.test(path);
}

function run(folder: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<unknown> {
  return promisify(execFile)(process.execPath, args, { cwd: folder, env: { ...ownEnvironment(), ...env } });
}

/** Serves the files of a folder, as hosts of static sites do. Resolves with the origin. */
export async function serve(folder: string, base: string): Promise<{ origin: string; server: Server }> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url!, 'http://site').pathname).slice(base.length);
    const file = path === '' || path.endsWith('/') ? `${path}index.html` : path;
    readFile(join(folder, file)).then(
      (content) => response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'text/plain' }).end(content),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
