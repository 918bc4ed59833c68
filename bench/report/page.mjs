/** Writes benchmarks.md and its charts. */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem, type } from 'node:os';
import { format } from 'oxfmt';
import { percent, table } from './format.mjs';
import { reasons } from './reasons.mjs';
import { targets } from './targets.mjs';

const INTRODUCTION = (command) =>
  `Made by \`npm run bench${command.length === 0 ? '' : ` -- ${command.join(' ')}`}\`: all contenders in one run, in alternating rounds, on the same Redis; medians. Before one is timed it has to prove that it limits. Ours is the packed tarball, called by its public names (\`Limiter.consume\`, \`LimiterService.check\`, the global guard) with default options; where a row says so, without telemetry, refusal cache and fallback. The limits are token buckets unless told otherwise.`;

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

/** Processes of one app on Express differ by more than what is wanted of them. */
const verdict = (what, reached) => {
  if (!reached) return 'not reached';
  return / of (an|the) app /.test(`${what.replace(',', ' ')} `) ? 'within the scatter' : 'reached';
};

const goals = (reached) =>
  table(
    ['', 'wanted', 'measured', ''],
    reached.map(({ what, target, value, reached: yes }) => [what, target, value.toFixed(2), verdict(what, yes)]),
  );

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
  await mkdir(to, { recursive: true });
  const reached = targets(results);
  const charts = new Map();
  const page = {
    chart(name, svg) {
      const file = `benchmarks-${name}.svg`;
      charts.set(file, svg);
      return `![${name}](${file})`;
    },
    profileOf: (title, profile) => profileOf(reached, title, profile),
  };
  const sections = cases.flatMap(({ name, section }) => section(results[name], page));
  const wanted = reached.length === 0 ? [] : ['## What we want to reach', goals(reached), reasons(reached)];
  const parts = [
    '# Benchmarks',
    INTRODUCTION(command),
    machine(versions, disturbed),
    'Client and server share the processors, so what one takes the other lacks: read the ratios, not the figures.',
    ...wanted,
    ...sections,
  ];
  for (const [file, svg] of charts) await writeFile(new URL(file, to), svg);
  const { code } = await format('benchmarks.md', parts.filter(Boolean).join('\n\n'));
  await writeFile(new URL('benchmarks.md', to), code);
  return reached;
}
