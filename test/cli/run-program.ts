import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll } from '@jest/globals';
import { runProgram as runSource } from '../../lib/cli/program.js';
import type { Report } from '../../lib/cli/simulate/report.js';
import { ensureBuilt } from '../support/processes/built.js';
import { PACKAGE_FOLDER } from '../support/processes/npm.js';

/** What a run of the program left. */
export interface ProgramRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the source of the program in this process, with a text as its standard input. */
export async function runHere(args: readonly string[], input = ''): Promise<ProgramRun> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const written = Promise.all([text(stdout), text(stderr)]);
  const code = await runSource(args, { stdin: Readable.from([Buffer.from(input)]), stdout, stderr });
  stdout.end();
  stderr.end();
  const [out, error] = await written;
  return { code, stdout: out, stderr: error };
}

/** Runs the built program as a shell would, in a folder of its own, with a text as its standard input. */
export function runProgram(args: readonly string[], { cwd, input }: { cwd?: string; input?: string | Buffer } = {}) {
  return new Promise<ProgramRun>((resolve, reject) => {
    const program = join(PACKAGE_FOLDER, 'dist/cli/main.js');
    const env = { ...process.env, NODE_OPTIONS: '' };
    const child = spawn(process.execPath, [program, ...args], { cwd, env, stdio: 'pipe' });
    const written = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (written.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (written.stderr += text));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...written }));
    // A program that refuses its arguments reads nothing.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
  });
}

/** A folder with logs, and the program that reads them. The tests of the spec run in it. */
export class LogFolder {
  private folder = '';
  private readonly before = process.cwd();

  constructor() {
    beforeAll(async () => {
      await ensureBuilt();
      this.folder = await mkdtemp(join(tmpdir(), 'sluice-logs-'));
      process.chdir(this.folder);
    });
    afterAll(async () => {
      process.chdir(this.before);
      await rm(this.folder, { recursive: true, force: true });
    });
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, lines: readonly (string | object)[]): Promise<void> {
    const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
    return writeFile(this.path(name), `${texts.join('\n')}\n`);
  }

  /** Runs `simulate` in this process. */
  simulate(...args: string[]): Promise<ProgramRun> {
    return runHere(['simulate', ...args]);
  }

  /** The same, and reads what it tells. */
  async report(...args: string[]): Promise<Report> {
    const { code, stdout, stderr } = await this.simulate('--json', ...args);
    if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
    return JSON.parse(stdout) as Report;
  }
}
