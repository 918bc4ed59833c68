/** Writes NOTES.md and its charts. */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem, type } from 'node:os';
import { format } from 'oxfmt';
import { figures } from './figures.mjs';
import { percent, table, whole } from './format.mjs';
import { reasons } from './reasons.mjs';
import { targets } from './targets.mjs';

const INTRODUCTION = (command) =>
  `Made by \`npm run bench${command.length === 0 ? '' : ` -- ${command.join(' ')}`}\`: all contenders in one run, in alternating rounds, on the same Redis; medians. Before one is timed it has to prove that it limits. Ours is the packed tarball, called by its public names (\`Limiter.consume\`, \`LimiterService.check\`, the global guard) with default options; where a row names one, with the option that it names, or with “everything off”: without telemetry, refusal cache and fallback. The limits are token buckets, except where noted.`;

/** How much of the processors was not this machine's: the case in which it was most. */
function worst(disturbed) {
  const [most] = Object.entries(disturbed).toSorted(([, one], [, other]) => other - one);
  return most === undefined ? 'unknown' : `at most ${percent(most[1])} (${most[0]})`;
}

const machine = (versions, disturbed) =>
  table(
    ['machine', ''],
    [
      ['date', new Date().toISOString().slice(0, 10)],
      ['processor', `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown'}`],
      ['memory', `${(totalmem() / 2 ** 30).toFixed(1)} GiB`],
      ['system', type()],
      ['taken by its host', worst(disturbed)],
      ...Object.entries(versions),
    ],
  );

const verdict = ({ reached, scatters }) => {
  if (!reached) return 'not reached';
  return scatters ? 'within the scatter' : 'reached';
};

const figure = (value) => (Math.abs(value) < 100 ? value.toFixed(2) : whole(Math.round(value)));

/** What is wanted of a case, or of one title of it, whether it was reached, and why not. */
function goalsOf(reached, name, title) {
  const goals = reached.filter((each) => each.case === name && (title === undefined || each.of === title));
  if (goals.length === 0) return [];
  const rows = goals.map((goal) => [goal.what, goal.target, figure(goal.value), verdict(goal)]);
  return [table(['what we want to reach', 'wanted', 'measured', ''], rows), reasons(goals)];
}

/** Where the processor time of a case goes, if it misses a target. */
function profileOf(reached, title, profile) {
  const missed = reached.filter(({ reached: yes, of }) => !yes && of === title);
  if (missed.length === 0 || profile === undefined) return [];
  return [
    `Misses: ${missed.map(({ what }) => what).join('; ')}. Where the client's processor time goes:`,
    table(
      ['by itself', 'function'],
      profile.map(({ name, share }) => [percent(share), `\`${name}\``]),
    ),
  ];
}

/** Writes what the cases found into a folder. */
export async function write({ cases, results, versions, disturbed, command, to }) {
  await mkdir(new URL('charts/', to), { recursive: true });
  const reached = targets(results);
  const charts = new Map();
  const page = {
    chart(name, svg) {
      const file = `charts/${name}.svg`;
      charts.set(file, svg);
      return `![${name}](${file})`;
    },
    goalsOf: (name, title) => goalsOf(reached, name, title),
    profileOf: (title, profile) => profileOf(reached, title, profile),
  };
  const pictures = cases.flatMap(({ name, picture }) => (picture === undefined ? [] : picture(results[name], page)));
  const sections = cases.flatMap(({ name, section }) => section(results[name], page));
  const parts = [
    '# Notes on benchmarks',
    'Targets, misses, profiles and what was tried, for people who work on the library. [Benchmarks](../docs/benchmarks.md) is the page for users.',
    'The cost of limits in an app, compared with peers in one run: less is better for times, more for decisions.',
    ...pictures,
    figures(results),
    INTRODUCTION(command),
    'Client and server share the processors: compare ratios, not figures. Targets are below each result.',
    ...sections,
    '## Machine and versions',
    machine(versions, disturbed),
  ];
  for (const [file, svg] of charts) await writeFile(new URL(file, to), svg);
  const { code } = await format('NOTES.md', parts.filter(Boolean).join('\n\n'));
  await writeFile(new URL('NOTES.md', to), code);
  return reached;
}
