import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

export interface RunProcessesOptions {
  /** How long all of them together may take. @default 500 000 */
  timeoutMs?: number;
  /** What happens to them meanwhile, from when they first go off together. When it is over they are told to come to an end. */
  during?: () => Promise<void>;
  /** Hears what a process tells meanwhile, by the index of its input. */
  onTold?: (index: number, told: unknown) => void;
  /** Flags of Node, such as `--expose-gc`. @default none */
  flags?: readonly string[];
}

/**
 * Flags of Node for processes that measure their heap: it can be collected, holds no compiled code, and holds all that is remembered
 * of types from the first call on. Else it grows for thousands of calls.
 */
export const STEADY_HEAP = [
  '--expose-gc',
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--no-lazy-feedback-allocation',
];

type Message = { ready: true } | { told: unknown } | { result: unknown };

/**
 * Runs a `.mjs` script in one Node process per input and resolves with their results, in the order of the inputs.
 * The script calls `runTask` of `process-task.mjs`. If one process fails or the time is up, all of them are ended.
 */
export async function runProcesses<Result>(
  script: string,
  inputs: readonly unknown[],
  { timeoutMs = 500_000, during = () => Promise.resolve(), onTold, flags = [] }: RunProcessesOptions = {},
): Promise<Result[]> {
  const children = inputs.map((input) =>
    fork(script, [JSON.stringify(input)], {
      // The flags of the test runner are not for them.
      execArgv: [...flags],
      env: process.env,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    }),
  );
  const { arrive, opened } = barrier(children);
  const results = Promise.all(
    children.map((child, index) => resultOf<Result>(child, arrive, (told) => onTold?.(index, told))),
  );
  const accompanied = opened.then(() => accompany(children, during));
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const error = new Error(`${script}: the processes were not done within ${timeoutMs} ms.`);
    timer = setTimeout(() => reject(error), timeoutMs);
  });
  try {
    // A task need not start together with others, and then nothing happens to it.
    return await Promise.race([results, accompanied.then(() => results), timeout]);
  } finally {
    clearTimeout(timer);
    await Promise.all(children.map(end));
  }
}

/** Counts those that are ready, and lets all go when the last one is. */
function barrier(children: readonly ChildProcess[]): { arrive: () => void; opened: Promise<void> } {
  let ready = 0;
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const arrive = () => {
    ready += 1;
    if (ready % children.length !== 0) return;
    for (const child of children) child.send('go');
    open?.();
  };
  return { arrive, opened };
}

/** Does what happens meanwhile, and then tells them to come to an end. */
async function accompany(children: readonly ChildProcess[], during: () => Promise<void>): Promise<void> {
  await during();
  for (const child of children) if (child.connected) child.send('stop', () => undefined);
}

function resultOf<Result>(child: ChildProcess, onReady: () => void, onTold: (told: unknown) => void): Promise<Result> {
  return new Promise((resolve, reject) => {
    let result: { value: Result } | undefined;
    let output = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.on('message', (message: Message) => {
      if ('ready' in message) onReady();
      else if ('told' in message) onTold(message.told);
      else result = { value: message.result as Result };
    });
    child.on('error', reject);
    // Not 'exit': what it wrote to stderr last may come after that.
    child.once('close', (code, signal) => {
      if (result && code === 0) resolve(result.value);
      else reject(new Error(`Process ${child.pid} ended with ${signal ?? code} and no result:\n${output}`));
    });
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
