/**
 * Finds phrases in pages, comments and messages that readers stumble over, as part of `npm run lint`. Every folder has a budget for each
 * phrase, in `wording.json`; phrases without one must not appear. With `--lower`, budgets that are no longer used up become smaller.
 * With paths, all places in them are listed.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** A phrase, how to find it, an example of it, and a better way to say that. */
const PHRASES = [
  ['wants', /(?<!\b(?:you|they|we) )\bwants?\b(?! to\b)/, "'rate' is -1, wants 1", 'expected X, received Y'],
  [
    'What ...',
    /(?:^\s*|[.:|*/] +)What (?!(?:is|are|does|do|did|if)\b)[a-z]/,
    'What is left. What came first',
    'name the thing',
  ],
  ['Whether ...', /(?:^|\*|\/\/) *Whether /, '/** Whether it fits. */', 'True if ...'],
  [
    'says',
    /\b(?:limit|option|page|log|table|row|guide|doc|header|error)s? (?:says?|said|tells?|told)\b/,
    'the log says so',
    'shows, returns, reports, contains',
  ],
  [
    'asks',
    /\b(?:redis|store|server|database|script|app|instance|region|home|client|check)s? (?:(?:is|are|was|were) (?:asked|told)|asks?|tells?|hears?)\b/i,
    'Redis is asked',
    'calls, queries, requests',
  ],
  ['stands', /\bstands?\b(?! for\b)/, 'the name stands there', 'is, appears'],
  [
    'holds',
    /\b(?:limit|rate|change|mode|one|rule)s? (?:also |still )?holds?\b/,
    'the rate holds',
    'applies, takes effect',
  ],
  [', too', /, too\b/, 'limits, too', '"also" before the verb'],
  [
    'is no',
    /(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer|more|doubt|need|way|such|reason|other)[a-z]/,
    'it is no limit',
    "isn't a",
  ],
  [
    'X of Y',
    /\b(?:user|job|call|key|line|name|response)s? of (?:redis|bullmq|nest|graphql|mcp|others|operators)\b/i,
    'a user of Redis',
    'Redis user',
  ],
  ['beside', /\bbesides?\b/, 'one beside it', 'next to, in addition to'],
  [
    'old words',
    /\b(?:anew|afresh|farther|lately|spelt|misspelt|whoever|thereof)\b/i,
    'starts anew',
    'again, recently, misspelled',
  ],
  ['so many', /\b(?:so many|that many|as many at once)\b/, 'so many units', 'N units, this many'],
  [
    'however ...',
    /\b(?:however (?:many|much|long|old|often|late|slow)|whatever (?:the|its|their|an?))\b/i,
    'however old',
    'no matter how old, regardless of',
  ],
  ['a try', /\b(?:a|each|every|the|refused|further) tr(?:y|ies)\b(?! to\b)/, 'each try counts', 'attempt'],
  [
    'neither does',
    /\band neither (?:can|do|does)\b|[.;] So (?:is|are|does|do|can) /,
    'it ends. So does it',
    'also, subject first',
  ],
  ['is there already', /\b(?:is|are) there (?:already|twice|only|once)\b/, 'what is there already', 'exists'],
  ['unless given', /\bunless (?:given|told)\b/, '10 s unless given', 'default: 10 s'],
  ['says nothing', /\b(?:knows?|says?|asks?) nothing\b/, 'the header says nothing', 'name what is missing'],
  [
    'by days',
    /\b(?:limit|limited|count|counted|usage|record|rate)s? by (?:days?|user|address|header)\b/,
    'a limit by user',
    'per user, per day',
  ],
];
for (const [name, pattern, example] of PHRASES) {
  if (!pattern.test(example)) throw new Error(`wording.mjs does not find its own example of '${name}'`);
}

const BUDGETS = join(import.meta.dirname, 'wording.json');
const FOLDERS = ['docs/guides', 'docs/algorithms', 'docs/reference', 'docs/start', 'docs/help', 'docs', 'lib', '*.md'];
const IGNORED = /(^|\/)(node_modules|build|dist|site|cache|\.temp)$|\.generated\.ts$/;
const PROSE = /\/\/.*|^\s*\*.*|\/\*.*|'[^']*\s[^']*'|"[^"]*\s[^"]*"|`[^`]*\s[^`]*`/g;

const args = process.argv.slice(2);
const lower = args.includes('--lower');
const paths = args.filter((arg) => !arg.startsWith('-'));
const found = [
  ...filesIn('docs'),
  ...filesIn('lib'),
  ...readdirSync('.').filter((name) => name.endsWith('.md')),
].flatMap((path) => phrasesIn(path));

if (paths.length > 0) {
  for (const { place, phrase } of found.filter(({ path }) => paths.some((each) => path.startsWith(each)))) {
    console.log(`${place}  '${phrase}'`);
  }
} else {
  const counts = {};
  for (const { folder, phrase } of found) {
    const phrases = (counts[folder] ??= {});
    phrases[phrase] = (phrases[phrase] ?? 0) + 1;
  }
  const budgets = JSON.parse(readFileSync(BUDGETS, 'utf8'));
  let over = 0;
  for (const [folder, phrases] of Object.entries(counts)) {
    for (const [phrase, count] of Object.entries(phrases)) {
      const budget = budgets[folder]?.[phrase] ?? 0;
      if (count <= budget) continue;
      over += 1;
      const [, , , better] = PHRASES.find(([name]) => name === phrase);
      console.error(`${folder}: '${phrase}' appears ${count} times, at most ${budget}. Write instead: ${better}`);
      const places = found.filter((one) => one.folder === folder && one.phrase === phrase);
      for (const { place, line } of places.slice(0, 12)) console.error(`    ${place}: ${line}`);
    }
  }
  if (over > 0) process.exit(1);
  if (lower) {
    const least = Object.entries(counts).map(([folder, phrases]) => [
      folder,
      Object.fromEntries(Object.entries(phrases).toSorted(byName)),
    ]);
    writeFileSync(BUDGETS, `${JSON.stringify(Object.fromEntries(least.toSorted(byName)), undefined, 2)}\n`);
  }
}

function byName([one], [other]) {
  return one < other ? -1 : 1;
}

function filesIn(folder) {
  return readdirSync(folder)
    .toSorted()
    .map((name) => join(folder, name))
    .filter((path) => !IGNORED.test(path))
    .flatMap((path) =>
      statSync(path).isDirectory() ? filesIn(path) : ['.md', '.ts', '.tsx'].includes(extname(path)) ? [path] : [],
    );
}

/** The phrases of a file: of a page outside its code blocks, of a program in its comments and texts. */
function phrasesIn(path) {
  const page = path.endsWith('.md');
  const folder = FOLDERS.find((each) => path.startsWith(`${each}/`)) ?? '*.md';
  let fenced = false;
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, index) => {
      if (page && /^\s*(?:```|~~~)/.test(line)) fenced = !fenced;
      if (fenced) return [];
      const prose = page ? line : (line.match(PROSE) ?? []).join(' ');
      if (prose === '') return [];
      return PHRASES.filter(([, pattern]) => pattern.test(prose)).map(([phrase]) => ({
        path,
        folder,
        phrase,
        place: `${path}:${index + 1}`,
        line: line.trim().slice(0, 120),
      }));
    });
}
