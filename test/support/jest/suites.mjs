/** Which specs belong to which part of the suite. Nothing is listed by hand: the name or the content of a spec decides. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const IMPORT = /^(?:import|export) (?!type\b)[^;]*?from '(\.[^']+)'|^import '(\.[^']+)'/gm;
/** Helpers that start something. */
const STARTERS = /^test\/support\/(?:browser|processes|redis)\//;
/** What a spec calls to start a server, an app that listens, or a process. */
const STARTS =
  /\b(?:connectRedis|listen|HttpApp\.start|createTestingModule|NestFactory\.\w+|execFile|spawn|fork)\(|process\.env\['TEST_/;
/** What a spec uses to leave variants or runs of its tests to the rest of the suite. */
const SPLITS = /\b(?:variants|propertyRuns|assertSideBySide|adapters|frameworks|appKinds)\b/;

const texts = new Map();

const text = (file) => {
  if (!texts.has(file)) texts.set(file, readFileSync(join(ROOT, file), 'utf8'));
  return texts.get(file);
};

/** All specs, by their paths from the root of the repository. */
export const specs = () =>
  readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .map((file) => `test/${file.replaceAll('\\', '/')}`)
    .filter((file) => file.endsWith('.spec.ts') && !file.startsWith('test/package/projects/'));

/** Specs that only `npm run test:all` runs. */
export const isLong = (spec) => spec.endsWith('.long.spec.ts');

/** Specs that start nothing: no Redis, no app that listens, no other process. */
export const isUnit = (spec) =>
  !isLong(spec) &&
  !withHelpers(spec).some((file) => STARTERS.test(file) || (!isSupport(file) && STARTS.test(text(file))));

/** Specs that `npm test` leaves out, or runs in part. */
export const isInRest = (spec) =>
  isLong(spec) || withHelpers(spec).some((file) => !isSupport(file) && SPLITS.test(text(file)));

const isSupport = (file) => file.startsWith('test/support/') || file === 'test/e2e/http-app.ts';

/** A spec and the files in `test/` that it imports, directly or not. */
function withHelpers(spec, found = new Set([spec])) {
  for (const [, from, bare] of text(spec).matchAll(IMPORT)) {
    const file = normalize(join(dirname(spec), from ?? bare)).replace(/\.js$/, '.ts');
    if (!file.startsWith('test/') || found.has(file) || !existsSync(join(ROOT, file))) continue;
    found.add(file);
    if (file.endsWith('.ts')) withHelpers(file, found);
  }
  return [...found];
}
