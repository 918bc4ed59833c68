export const HELP = `Usage: nestjs-sluice migrate [options] [path...]

Converts an app's code from @nestjs/throttler and rate-limiter-flexible, such
that its routes answer as before. Edits only the places that it converts, and
package.json. Reports each change, and what it left: where, why, and what to do.
Files that the project's Prettier has formatted are formatted with it again.

A path is a file or a folder, by default the folder that it runs in. Folders
node_modules, dist, build and coverage are left out. It needs the TypeScript of
the project, a version from 5 to 6.

Options:
  --dry-run        writes nothing, and prints the changes as a unified diff
  --from <package> converts only one: throttler or rate-limiter-flexible
  --force          runs even if the git work tree has uncommitted changes
  --help           this text

Exit codes: 0 if it ran, even if something was left; 1 if it cannot read the
project; 2 if the command line is wrong
`;
