/** The text of `nestjs-sluice init --help`. */
export const HELP = `Usage: nestjs-sluice init [options]

Adds limits to the Nest project of this folder: the module, on the Redis that the
variable REDIS_URL names, in process without it; an example limit on the first
controller; and the helper that switches limits off in e2e tests. What is there
already stays as it is. 'nest add nestjs-sluice' does the same.

Installs nestjs-sluice with npm, pnpm or yarn, whichever the project uses, if it is
not installed.

Options:
  --module <file>     the file of the root module; app.module.ts in the source folder
                      of nest-cli.json unless given
  --dry-run           prints a diff, and changes and installs nothing
  --skip-install      says what to install, and installs nothing
  --help              this text

Exit codes: 0, 1 if this is no Nest project, or could not be changed, 2 if the
command line is wrong
`;
