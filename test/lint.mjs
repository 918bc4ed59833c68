/**
 * `npm run lint`: formatting, lint rules and types. The linter looks again only at files that have changed since it last found nothing,
 * or that import what has changed; without such a run before, at all of them. Arguments such as `--fix` are handed to it.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const FOUND_WELL = 'node_modules/.cache/lint.json';
const LINTED = /\.[cm]?[jt]sx?$/;
const IGNORED =
  /(^|\/)(node_modules|build|dist|coverage|site|reports|\.git|\.stryker-tmp|\.temp|cache)$|^test\/package\/projects$|\.generated\.ts$/;
const IMPORTED = /(?:\bfrom|\bimport|\bimport\()\s*['"](\.[^'"]+)['"]/g;
/** What a file that imports the package by its name looks at. */
const BUILT = /['"](?:nestjs-sluice|(?:\.\.\/)+(?:build|dist))[/'"]/;
/** What may change the answer for any file. */
const SETTINGS = [
  '.oxlintrc.json',
  'package.json',
  'node_modules/.package-lock.json',
  ...filesIn('.', /tsconfig.*\.json$/),
];

const files = filesIn('.', LINTED);
const texts = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
const hashes = new Map(files.map((file) => [file, hash(texts.get(file))]));
const imports = new Map(files.map((file) => [file, importsOf(file)]));
const settings = hash(...SETTINGS.map((file) => readFileSync(file)), ...declarations());
const built = hash(...['build', 'dist'].flatMap((name) => filesIn(name, /\.d\.ts$/)).map((file) => readFileSync(file)));

const keys = Object.fromEntries(files.map((file) => [file, keyOf(file)]));
const before = existsSync(FOUND_WELL) ? JSON.parse(readFileSync(FOUND_WELL, 'utf8')) : undefined;
const changed = files.filter((file) => before?.[file] !== keys[file]);

run('oxfmt', process.argv.includes('--fix') ? [] : ['--list-different']);
if (changed.length === 0) console.log('The linter has found nothing in these files before.');
else run('oxlint', ['--type-aware', '--type-check', ...process.argv.slice(2), ...(before ? changed : [])]);
// What `--fix` has changed is looked at again.
mkdirSync(dirname(FOUND_WELL), { recursive: true });
writeFileSync(FOUND_WELL, JSON.stringify(keys));

function run(program, args) {
  const { status } = spawnSync(`node_modules/.bin/${program}`, args, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** The files of a folder, by their paths from the root. */
function filesIn(folder, pattern) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (IGNORED.test(path)) return [];
    if (entry.isDirectory()) return filesIn(path, pattern);
    return pattern.test(path) ? [path] : [];
  });
}

/** Declarations that hold in files that do not import them. */
function declarations() {
  return files.filter((file) => file.endsWith('.d.ts')).map((file) => texts.get(file));
}

function importsOf(file) {
  return [...texts.get(file).matchAll(IMPORTED)]
    .map(([, specifier]) => normalize(join(dirname(file), specifier)))
    .flatMap((path) => [path, ...['ts', 'tsx', 'd.mts'].map((ending) => path.replace(/\.m?js$/, `.${ending}`))])
    .filter((path) => texts.has(path));
}

/** Changes with a file, and with all that it imports. */
function keyOf(file) {
  const seen = new Set([file]);
  // The loop takes in what is added while it runs.
  for (const one of seen) for (const imported of imports.get(one)) seen.add(imported);
  const parts = [...seen].flatMap((one) => [one, hashes.get(one), ...(BUILT.test(texts.get(one)) ? [built] : [])]);
  return hash(settings, ...parts);
}

function hash(...parts) {
  const sum = createHash('sha1');
  for (const part of parts) sum.update(part).update('\0');
  return sum.digest('hex');
}
