import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_FOLDER } from '../processes/npm.js';
import { clientOf, findRedisServer } from './redis-binary.mjs';

/** A shell in a folder of its own, in which `redis-cli` asks one server, and `npx nestjs-sluice` is the built program. */
export class RedisShell {
  private constructor(readonly folder: string) {}

  static async open(port: number): Promise<RedisShell> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-shell-'));
    const program = join(PACKAGE_FOLDER, 'dist/cli/main.js');
    const scripts = {
      'redis-cli': `exec '${clientOf(findRedisServer()!)}' -p ${port} "$@"`,
      npx: `shift; exec '${process.execPath}' '${program}' "$@"`,
    };
    for (const [name, line] of Object.entries(scripts)) {
      await writeFile(join(folder, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 });
    }
    return new RedisShell(folder);
  }

  /** Runs lines, and returns what they write. Rejects if the last one fails. */
  async run(lines: string, environment: NodeJS.ProcessEnv = {}): Promise<string> {
    const env = {
      ...process.env,
      NODE_OPTIONS: '',
      PATH: `${this.folder}${delimiter}${process.env['PATH']}`,
      ...environment,
    };
    const { stdout } = await promisify(execFile)('sh', ['-c', lines], { cwd: this.folder, env });
    return stdout;
  }

  close(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}
