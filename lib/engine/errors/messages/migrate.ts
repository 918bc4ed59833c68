import { show } from '../wording.js';

/** The messages of the command `migrate`. */
export const migrateMessages = {
  noCompiler: (folder: string, version: string | undefined) =>
    `${folder} has ${version === undefined ? 'no TypeScript,' : `TypeScript ${version}, which has no API,`} wants a version from 5 to 6: ` +
    "'npm install --save-dev typescript@5', or 'npx -p typescript@5 -p nestjs-sluice nestjs-sluice migrate'",
  noPath: (path: string) => `${show(path)} is not there, wants a file or a folder`,
  uncommitted: (folder: string) =>
    `${folder} has changes that are not committed, wants a clean git work tree, '--dry-run' or '--force'`,
} as const;
