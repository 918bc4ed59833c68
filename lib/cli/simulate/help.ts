/** The text of `nestjs-sluice simulate --help`. */
export const HELP = `Usage: nestjs-sluice simulate --limit <limit> [options] <log | ->
       nestjs-sluice simulate --limit <limit> --generate poisson:80/s [options]

Runs limits over the requests of an access log, each at its time, and reports
what they would have allowed and refused. A request is allowed by all limits, or
charged to none.

A limit is algo:rate/interval[,option=value...][@name]
  gcra:60/1s                      gcra:60/1s,burst=120@api
  sliding-window:1000/1m          sliding-log:5/15m,blockFor=1h
  calendar-window:1000/day,timezone=Europe/Berlin
  token-bucket:5/10s,burst=20     gcra:500/1s,key=global,mode=shadow
  sliding-log:5/15m,blockFor=1m/10m/1h,forgetAfter=1d
  An option is one of the algorithm's, or blockFor, strike, forgetAfter, mode, or key.
  Of units that tenants share, the total is simulated: leave 'share' out.

Options:
  --limit <limit>     a limit; required, may be given several times
  --policy <file>     the limits of a policy file, with their names; may stand beside
                      --limit. Their keys are ip, user or global, or that of --key
  --path <path>       only requests of a path, such as '/api/*'; may be given several
                      times
  --status <status>   only requests that were answered so, such as 404 or 2xx; may be
                      given several times
  --key <key>         ip, global, a field, or a template such as {tenant}:{user};
                      ip unless given
  --cost <field>      the field with the units of a request; 1 unless given
  --time <field>      the field with the time, in ndjson; found unless given
  --format <format>   ndjson, nginx, apache, combined, common; found unless given
  --reorder <time>    how late a line may be and still be sorted in; 10s unless
                      given
  --generate <what>   poisson:80/s or constant:80/s instead of a log
  --for <time>        for how long; 1h unless given
  --seed <number>     other random requests; 1 unless given
  --keys <number>     of how many keys; 1 unless given
  --max-keys <number> how many keys are known at a time; 100000 unless given
  --json              writes JSON instead of a table
  --svg <file>        writes a chart of allowed and refused requests, too
  --help              this text

Exit codes: 0, 1 if the log cannot be read, 2 if the command line is wrong
`;
