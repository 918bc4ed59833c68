import { show } from '../wording.js';

/** The messages of `nestjs-sluice init`. */
export const initMessages = {
  noProject: (folder: string) =>
    `${show(folder)} isn't a Nest project: its package.json is missing or lacks '@nestjs/core'. Go to the folder of your project, or create one with 'npx @nestjs/cli new'`,
  noModule: (path: string) =>
    `the file ${show(path)} does not exist. Pass the file of the root module, such as '--module src/app.module.ts'`,
  noDecorator: (path: string) =>
    `${show(path)} has no class with @Module({ ... }). Pass the file of the root module, such as '--module src/app.module.ts'`,
  unreadableImports: (path: string) =>
    `the 'imports' of the module in ${show(path)} are not a list. Add 'RateLimitModule.forRoot({ ... })' to them yourself`,
  notInstalled: (command: string) =>
    `${show(command)} failed, so nestjs-sluice is not installed. Run the command yourself, then start the app`,
} as const;
