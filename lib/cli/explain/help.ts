import { HOME_HELP } from '../app/help.js';

/** The text of `nestjs-sluice explain --help`. */
export const HELP = `Usage: nestjs-sluice explain --redis <url> --limit <limit> --name <name> --key <key>
       nestjs-sluice explain --module <file> --name <name> --key <key>
       nestjs-sluice explain --module <file> --controller <class> --handler <method>
                             [--key <key>...]

Tells what limits do to a request, and why: which ones hold, from where, under
which overrides, how much is left of them, and what the request would get.
Charges nothing, and writes nothing to Redis.

With --redis, without the app: a limit of its 'define', as it is configured
there, under the overrides and lists that Redis has; those of the module's
options and of a policy are the app's alone. In a region, the home has these:
without --home it says that they are unknown. With --module, of the app itself: it
is started, without listening, with all that its modules do at start-up, and
closed again.

Options:
  --redis <url>       where the app counts; the variable REDIS_URL of the
                      environment unless given
${HOME_HELP}  --prefix <prefix>   the 'prefix' of the app; sluice unless given
  --timeout <time>    how long Redis may take to answer; 2s unless given
  --limit <limit>     algo:rate/interval[,option=value...], such as
                      gcra:60/1s,burst=120 or concurrency:5/1m; with scope=world
                      if it counts over several regions
  --everywhere        the limit is one of the module's 'limits'
  --module <file>     the file of the app's module, built: ./dist/app.module.js,
                      or with its name, ./dist/app.module.js#AppModule
  --name <name>       the name of the limit
  --controller <class>  the class of a route
  --handler <method>  the method of a route
  --key <key>         an identity, such as tenant:acme or ip:203.0.113.7; of a
                      route may be given several times, for limits of other keys
  --cost <units>      the units of the request
  --share <tenant>    the tenant, for limits whose units tenants share; without
                      it the total of all tenants is explained
  --ip <address>      the address of the client, for lists of addresses; of a
                      route it is the first address among the keys
  --json              writes JSON
  --help              this text

Exit codes: 0, 1 if the app cannot be started, or Redis or the home cannot be
read, 2 if the command line is wrong
`;
