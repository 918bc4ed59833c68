import { LIMIT_HELP, OPERATION_HELP } from '../app/help.js';
import type { KeyAction } from './key.settings.js';

const WHAT: Readonly<Record<KeyAction, { does: string; options?: string; nothing: string }>> = {
  block: {
    does: `Refuses a key from now on, on all instances, whatever it has left. Replaces a block
that is not over. What it has used stays used.`,
    options: '  --for <time>        for how long, at most 1 year; 10m unless given\n',
    nothing: '',
  },
  unblock: {
    does: `Ends a block of a key, and forgets its offences; after a block of the limit's own
'blockFor' the key starts fresh. If you know only a part of the key, such as the
account in ann@x.com|203.0.113.7, give that: the error lists the blocked keys that
contain it, which instances with a console have noted.`,
    nothing: ', if the key is not blocked',
  },
  reset: {
    does: 'Forgets what a key has used, and its block.',
    nothing: ', if the key has used nothing',
  },
};

/** The texts of `--help`. */
export const KEY_HELP = Object.fromEntries(
  Object.entries(WHAT).map(([action, { does, options = '', nothing }]) => [
    action,
    `Usage: nestjs-sluice ${action} <limit> <key> --redis <url> --limit <definition>
       nestjs-sluice ${action} <limit> <key> --module <file>

${does} Prints the state before and after.

The limit is named as the app names it, in 'define' or among the module's limits;
the key is what it counts by, such as tenant:acme or ip:203.0.113.7.

Options:
${options}${LIMIT_HELP}${OPERATION_HELP}
Exit codes: 0, 1 if nothing was changed: if Redis cannot be reached or has no
counter of such a limit${nothing}; 2 if the command line is wrong
`,
  ]),
) as Readonly<Record<KeyAction, string>>;
