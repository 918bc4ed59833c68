import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../sample-app/dist/main.js', import.meta.url));
/** What it writes last. */
const LINK = /^See it work: (\S+)\n/m;
/** These only end what hangs. */
const START_TIMEOUT_MS = 500_000;
const STOP_TIMEOUT_MS = 120_000;

/** The sample app, in a process of its own. */
export interface SampleApp {
  /** What it wrote until it had started. */
  readonly output: string;
  /** Where its page is. */
  readonly url: string;
  /** Resolves to the signal or the exit code with which it ended. */
  stop(): Promise<string | number | null>;
}

/**
 * Starts the built sample on a free port. Rejects with what it wrote if it ends first.
 *
 * @param main its script, which may be bundled
 */
export async function startSample(env: Record<string, string>, main = MAIN): Promise<SampleApp> {
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, PORT: '0', NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // Not 'exit': what it wrote last may come after that.
  const closed = once(child, 'close') as Promise<[code: number | null, signal: string | null]>;
  let output = '';
  const started = new Promise<void>((resolve) => {
    const read = (text: string) => {
      output += text;
      if (LINK.test(output)) resolve();
    };
    child.stdout.setEncoding('utf8').on('data', read);
    child.stderr.setEncoding('utf8').on('data', read);
  });
  const stop = async () => {
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    child.kill();
    const [code, signal] = await closed;
    clearTimeout(timer);
    return signal ?? code;
  };
  const late = sleep(START_TIMEOUT_MS, 'late' as const, { ref: false });
  const outcome = await Promise.race([started, closed.then(() => 'ended' as const), late]);
  if (outcome !== undefined) {
    await stop();
    throw new Error(`The sample ${outcome === 'late' ? 'did not start in time' : 'ended'}:\n${output}`);
  }
  const url = LINK.exec(output)?.[1];
  if (url === undefined) throw new Error(`The sample told no link:\n${output}`);
  return { output, url, stop };
}
