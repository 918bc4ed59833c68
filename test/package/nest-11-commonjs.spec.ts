import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { npm, pack, PACKAGE_FOLDER } from '../support/npm.js';

const INSTALL_TIMEOUT_MS = 240_000;
const BOOT_TIMEOUT_MS = 20_000;

describe('a NestJS 11 application in CommonJS', () => {
  let folder: string;
  let app: ChildProcess | undefined;
  let url: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-nest-11-'));
    const { filename } = await pack('--pack-destination', folder);
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({
        name: 'nest-11-app',
        private: true,
        dependencies: {
          '@nestjs/common': '^11.0.0',
          '@nestjs/core': '^11.0.0',
          '@nestjs/platform-express': '^11.0.0',
          '@nestjs/testing': '^11.0.0',
          'nestjs-sluice': `file:./${filename}`,
          'reflect-metadata': '^0.2.0',
          rxjs: '^7.8.0',
        },
      }),
    );
    const flags = ['--no-audit', '--no-fund', '--prefer-offline', '--no-package-lock', '--ignore-scripts'];
    await npm(['install', ...flags], folder, INSTALL_TIMEOUT_MS);
    for (const file of ['nest-11-app.cjs', 'nest-11-main.cjs', 'nest-11-test.cjs']) {
      await copyFile(join(PACKAGE_FOLDER, 'test/package', file), join(folder, file));
    }
    app = fork(join(folder, 'nest-11-main.cjs'), {
      cwd: folder,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    url = `http://127.0.0.1:${await portOf(app)}/reports`;
  }, INSTALL_TIMEOUT_MS + 90_000);

  afterAll(async () => {
    if (app && app.exitCode === null && app.signalCode === null) {
      const exited = once(app, 'exit');
      app.kill('SIGKILL');
      await exited;
    }
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it('limits a route', async () => {
    const responses = [await fetch(url), await fetch(url), await fetch(url)];
    const bodies = await Promise.all(responses.map((response) => response.text()));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(bodies[0]).toBe('{"reports":[]}');
    const refusal = responses[2]?.headers;
    expect(Number(refusal?.get('retry-after'))).toBeGreaterThan(50);
    expect(Number(refusal?.get('retry-after'))).toBeLessThanOrEqual(60);
    expect(refusal?.get('ratelimit')).toContain('r=0');
  });

  it('is tested with the testing kit', async () => {
    const test = fork(join(folder, 'nest-11-test.cjs'), {
      cwd: folder,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const told = once(test, 'message');
    const [code] = (await once(test, 'close')) as [number | null];
    expect(code).toBe(0);
    expect((await told)[0]).toEqual({ disabled: [200, 200, 200], counted: [200, 200, 429, 200] });
  });

  it('has one copy of Nest 11, and no ioredis', async () => {
    const installed = await installedPackages(folder);
    const copiesOf = (name: string) => installed.filter((path) => path.endsWith(`node_modules/${name}`));
    expect(copiesOf('@nestjs/common')).toEqual(['node_modules/@nestjs/common']);
    expect(copiesOf('@nestjs/core')).toEqual(['node_modules/@nestjs/core']);
    expect(copiesOf('nestjs-sluice')).toEqual(['node_modules/nestjs-sluice']);
    expect(copiesOf('ioredis')).toEqual([]);
  });
});

/** The folders of all packages, nested ones too, with `/` as the separator. */
async function installedPackages(folder: string): Promise<string[]> {
  const files = await readdir(folder, { recursive: true });
  const manifest = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\/package\.json$/;
  return files.flatMap((file) => manifest.exec(file.split(sep).join('/'))?.[1] ?? []);
}

function portOf(app: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = '';
    const timer = setTimeout(() => fail(`did not listen within ${BOOT_TIMEOUT_MS} ms`), BOOT_TIMEOUT_MS);
    const fail = (what: string) => {
      clearTimeout(timer);
      reject(new Error(`The application ${what}:\n${output}`));
    };
    app.stderr?.setEncoding('utf8').on('data', (text: string) => (output += text));
    app.once('close', (code) => fail(`ended with ${code}`));
    app.once('message', ({ port }: { port: number }) => {
      clearTimeout(timer);
      resolve(port);
    });
  });
}
