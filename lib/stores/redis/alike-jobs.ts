import type { Check } from '../store.js';
import type { Job } from './jobs.js';
import { areAlike, isPlainCheck } from './plain-checks.js';

/**
 * The fewest jobs that are worth a call of their own: the fast way saves about half of what the general way takes for each, and
 * an additional call costs as much as ten of them.
 */
const LEAST_JOBS = 12;
/** The most groups to compare jobs with. */
const MOST_GROUPS = 16;

interface Group {
  /** `undefined` for jobs that only the general way can do. */
  readonly check: Check | undefined;
  readonly jobs: Job[];
}

/**
 * Splits the jobs of a turn so that the script can decide as many as worthwhile in the fast way, which takes checks that are all
 * alike. Jobs for one identity stay together, in the order in which they came.
 */
export function partAlike(jobs: Job[]): Job[][] {
  if (jobs.length < LEAST_JOBS) return [jobs];
  const { check: first } = jobs[0]!;
  if (first !== undefined && jobs.every(({ check }) => check !== undefined && areAlike(first, check))) return [jobs];
  const groups = groupsOf(jobs);
  const worthwhile = groups.filter(({ check, jobs: members }) => check !== undefined && members.length >= LEAST_JOBS);
  if (worthwhile.length === 0) return [jobs];
  const parts = worthwhile.map((group) => group.jobs);
  const parted = new Set(parts.flat());
  const rest = jobs.filter((job) => !parted.has(job));
  if (rest.length > 0) parts.push(rest);
  return areApart(parts) ? parts : [jobs];
}

function groupsOf(jobs: readonly Job[]): Group[] {
  const others: Group = { check: undefined, jobs: [] };
  const groups = [others];
  for (const job of jobs) {
    const { check } = job;
    let group = check && groups.find((each) => each.check !== undefined && areAlike(each.check, check));
    if (group === undefined && check !== undefined && groups.length < MOST_GROUPS && isPlainCheck(check)) {
      group = { check, jobs: [] };
      groups.push(group);
    }
    (group ?? others).jobs.push(job);
  }
  return groups;
}

/** Whether no identity is in two parts. */
function areApart(parts: readonly Job[][]): boolean {
  const partOf = new Map<string, Job[]>();
  for (const part of parts) {
    for (const job of part) {
      for (const { identity } of job.counters) {
        const known = partOf.get(identity);
        if (known === undefined) partOf.set(identity, part);
        else if (known !== part) return false;
      }
    }
  }
  return true;
}
