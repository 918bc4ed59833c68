import { HOME_HELP } from '../app/help.js';

/** The text of `nestjs-sluice console --help`. */
export const HELP = `Usage: nestjs-sluice console --redis <url> [--home <url>] [--prefix <prefix>]
                             [--write --by <name>]

Serves the console of an app without the app, such as while none of its instances runs.
It takes the limits that instances with a console have published on Redis in the last
week, and prints a link that only you can open: it holds a token, and the server listens
on this machine alone. It counts nothing and, without '--write', changes nothing.

Options:
  --redis <url>       where the app counts; the variable REDIS_URL of the
                      environment unless given
${HOME_HELP}  --prefix <prefix>   the 'prefix' of the app; sluice unless given
  --timeout <time>    how long Redis may take to answer; 2s unless given
  --port <port>       where to listen on 127.0.0.1; a free port unless given
  --write             lets whoever has the link change what the console can change
  --by <name>         who does it, for the log; needed with '--write'
  --plain             shows identities as they are, not as hashes
  --help              this text

For an app with 'regions', --redis is that of one region. Without --home the console shows
no rates, modes and lists, changes none, and does not look up limits of scope 'world'.
With it, it looks and changes as no instance of any region, and takes no units.

It runs until it is interrupted. Limits that count in the processes of the app, such as
adaptive ones, and those that are declared on routes are shown, but cannot be looked up.

Exit codes: 0, 1 if Redis cannot be reached or has no limits of such an app; 2 if the
command line is wrong
`;
