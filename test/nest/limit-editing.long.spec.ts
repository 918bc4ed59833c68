import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { ALGORITHMS, optionNamesOf } from '../support/limits/checked-options.js';
import { LIMIT_MISTAKES, MOST_LINES } from '../support/limits/limit-mistakes.js';

const FOLDER = process.cwd();
const CURSOR = '/* here */';
const IMPORTS = `
import { RateLimit } from './lib/nest/decorators.js';
import { defineLimit } from './lib/app/config/limit-definition.js';
`;

/** What an editor has open, by path. */
const opened = new Map<string, string>();
const open = (name: string, text: string): string => {
  const path = `${FOLDER}/${name}.ts`;
  opened.set(path, IMPORTS + text);
  return path;
};
const readFile = (path: string): string | undefined => opened.get(path) ?? ts.sys.readFile(path);
const service = languageService();

function languageService(): ts.LanguageService {
  const { config } = ts.readConfigFile('tsconfig.base.json', readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, FOLDER);
  return ts.createLanguageService({
    getScriptFileNames: () => [...opened.keys()],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const text = readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => FOLDER,
    getCompilationSettings: () => options,
    getDefaultLibFileName: (settings) => ts.getDefaultLibFilePath(settings),
    fileExists: (path) => opened.has(path) || ts.sys.fileExists(path),
    readFile,
    directoryExists: (path) => ts.sys.directoryExists(path),
    getDirectories: (path) => ts.sys.getDirectories(path),
  });
}

// All are opened before the first is asked about: the program is made once.
const mistakes = Object.entries(LIMIT_MISTAKES).map(([name, text], i) => ({ name, path: open(`mistake-${i}`, text) }));
const limits = ALGORITHMS.flatMap((algo) =>
  [`RateLimit({`, `RateLimit('other', {`, `defineLimit({`].map((call, i) => ({
    algo,
    call,
    path: open(`${algo}-${i}`, `${call} algo: '${algo}', ${CURSOR} });`),
  })),
);
const right = open(
  'right',
  `const window = { algo: 'calendar-window', rate: 1, period: 'day' } as const;
  RateLimit('other', { ...window, anchor: (context) => context.getArgs()[0] ?? null });
  RateLimit('other', { algo: 'budget', limit: 1, period: 'day', anchor: (context) => context.getArgs()[0] });
  RateLimit('other', (context) => (context.getType() === 'http' ? null : ['other']));
  const given: Parameters<typeof RateLimit> = ['other', { algo: 'gcra', rate: 1, interval: '1s' }];
  RateLimit(...given);`,
);

function errorsOf(path: string): string[] {
  const diagnostics = service.getSemanticDiagnostics(path);
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

function completionsOf(path: string): string[] {
  const { entries = [] } = service.getCompletionsAtPosition(path, opened.get(path)!.indexOf(CURSOR), {}) ?? {};
  return entries.map(({ name }) => name);
}

describe('an editor', () => {
  it.each(limits)('completes $call algo: $algo by the options that such a limit has', ({ algo, path }) => {
    expect(completionsOf(path).toSorted()).toEqual(optionNamesOf(algo));
  });

  it.each(mistakes)('says in one short message what is wrong: $name', ({ path }) => {
    const errors = errorsOf(path);
    expect(errors).toHaveLength(1);
    expect(errors[0]!.split('\n').length).toBeLessThanOrEqual(MOST_LINES);
  });

  it('knows the context of functions, beside names too, and what a spread of arguments is', () => {
    expect(errorsOf(right)).toEqual([]);
  });
});
