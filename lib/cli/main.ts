#!/usr/bin/env node
import { runProgram } from './program.js';

// Whatever reads the output may have read enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const code = await runProgram(process.argv.slice(2), process);
process.exitCode = code;
// An app that was started to be asked may leave open what it opened. All that was written before goes out first.
process.stdout.write('', () => process.exit(code));
