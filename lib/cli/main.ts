#!/usr/bin/env node
import { runProgram } from './program.js';

// The reader of the output may stop early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const code = await runProgram(process.argv.slice(2), process);
process.exitCode = code;
// The app that was started may leave handles open. Everything written so far is flushed first.
process.stdout.write('', () => process.exit(code));
