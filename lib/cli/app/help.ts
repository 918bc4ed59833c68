/** The lines of `--help` on the definition of a limit. */
export const LIMIT_HELP = `  --limit <definition>  the limit as the app defines it, without '--module':
                      algo:rate/interval[,option=value...], such as
                      gcra:60/1s,burst=120 or concurrency:5/1m; with scope=world
                      if it counts over several regions. Not needed if instances with a
                      console publish the limit (not for 'explain')
  --everywhere        the limit is one of the module's 'limits'
`;

/** The lines of `--help` on the home of regions. */
export const HOME_HELP = `  --home <url>        the home of the app's 'regions', if there are several: rates,
                      modes, lists and limits of scope 'world' are kept there; the
                      variable HOME_REDIS_URL unless given
`;

/** The lines of `--help` on these options. */
export const OPERATION_HELP = `  --redis <url>       where the app counts; the variable REDIS_URL of the
                      environment unless given
${HOME_HELP}  --prefix <prefix>   the 'prefix' of the app; sluice unless given
  --timeout <time>    how long Redis may take to answer; 2s unless given
  --module <file>     takes limits, Redis and prefix from the app's module instead,
                      built: ./dist/app.module.js, or with its name,
                      ./dist/app.module.js#AppModule. The app is started, without
                      listening, and closed again
  --by <name>         who does it, for the log
  --reason <text>     why, for the log
  --force             also for a limit that has no counter now, for a prefix that no
                      instance has used yet, and for an address as a key
  --json              writes JSON
  --help              this text
`;
