import { LIMIT_HELP, OPERATION_HELP } from '../app/help.js';

/** The text of `nestjs-sluice rates --help`. */
export const HELP = `Usage: nestjs-sluice rates [list] --redis <url>
       nestjs-sluice rates set <limit> <option=value...> --redis <url> --limit <definition>
       nestjs-sluice rates mode <limit> enforce|shadow|off --redis <url> --limit <definition>
       nestjs-sluice rates clear <limit> --redis <url> --limit <definition>
       each also with --module <file> instead of --redis and --limit

Changes rates and modes of limits on all instances, without a deploy, and prints them
before and after:
  nestjs-sluice rates set api rate=50 burst=100 --key 'tenant:*' --for 1h
'list' lists all changes in force: rates, modes, and entries of lists. 'clear' ends the
changes of a rate and of a mode.

Options:
  --key <key>         for one identity, or for all whose keys begin so: 'tenant:*';
                      all identities unless given
  --for <time>        for how long, at most 1 year; until cleared unless given
  --inherit <how>     how counters take over a rate: keep, proportional, additive or
                      reset; keep unless given
${LIMIT_HELP}${OPERATION_HELP}
Exit codes: 0, 1 if nothing was changed: if Redis cannot be reached or has no counter
of such a limit, or there is nothing to clear; 2 if the command line is wrong
`;
