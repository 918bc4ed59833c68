/** The text of `--help`. */
export const CALL_HELP = `Usage: nestjs-sluice call <limit> <key> --limit <definition> [options]
       nestjs-sluice call --script

Prints the lines of redis-cli that load the script and decide a limit by hand, and
explains the reply. Asks neither Redis nor an app. With --script it prints the script
itself, for redis-cli or for a service in another language.

The limit is named as the app names it, in 'define' or among the module's limits;
the key is what it counts by, such as tenant:acme or ip:203.0.113.7.

Options:
  --limit <definition>  the limit as the app defines it:
                      algo:rate/interval[,option=value...], such as
                      gcra:60/1s,burst=120; not concurrency, and no limit with
                      the scope 'world', whose units come from the home of regions
  --everywhere        the limit is one of the module's 'limits'
  --cost <units>      the units to take; 1 unless given
  --peek              only looks, and takes nothing
  --prefix <prefix>   the 'prefix' of the app; sluice unless given
  --script            prints the script
  --help              this text

Exit codes: 0, 2 if the command line is wrong
`;
