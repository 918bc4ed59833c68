import { show } from '../wording.js';

/** The messages of `nestjs-sluice init`. */
export const initMessages = {
  noProject: (folder: string) =>
    `${show(folder)} is no Nest project: it has no package.json with '@nestjs/core', wants the folder of one; 'npx @nestjs/cli new' makes one`,
  noModule: (path: string) =>
    `there is no file ${show(path)}, wants the one of the root module, by '--module src/app.module.ts'`,
  noDecorator: (path: string) =>
    `${show(path)} has no class with @Module({ ... }), wants the file of the root module, by '--module src/app.module.ts'`,
  unreadableImports: (path: string) =>
    `the 'imports' of the module in ${show(path)} are no list, wants 'RateLimitModule.forRoot({ ... })' among them, by hand`,
  notInstalled: (command: string) =>
    `${show(command)} failed, so nestjs-sluice is not installed; run it, then start the app`,
} as const;
