import { show } from '../wording.js';

/** The messages of the command `migrate`. */
export const migrateMessages = {
  noCompiler: (folder: string, version: string | undefined) =>
    `${folder} has ${version === undefined ? 'no TypeScript' : `TypeScript ${version}, which has no API`}. Install a version from 5 to 6: ` +
    "'npm install --save-dev typescript@5', or run 'npx -p typescript@5 -p nestjs-sluice nestjs-sluice migrate'",
  noPath: (path: string) => `${show(path)} does not exist. Pass a file or a folder`,
  uncommitted: (folder: string) =>
    `${folder} has uncommitted changes. Commit them first, or use '--dry-run' or '--force'`,
} as const;
