import type { Check } from '../store.js';
import type { Job } from './jobs.js';
import { areAlike } from './plain-checks.js';

/**
 * The least work of a group that is worth a call of its own, in checks of a plain counter: the fast way saves about half of what the
 * general way takes for each, and a call more takes as much as ten of them.
 */
const LEAST_WORK = 12;
/** Jobs are compared with so many groups at most. */
const MOST_GROUPS = 16;

interface Group {
  readonly check: Check;
  readonly jobs: Job[];
  work: number;
}

/**
 * Parts the jobs of a turn, so that the script can decide as many of them as it pays the fast way, which takes checks that are all
 * alike. All others go together, and first.
 */
export function partAlike(jobs: Job[]): Job[][] {
  const first = jobs.length > 1 ? jobs[0]!.plainCheck : undefined;
  if (first !== undefined && jobs.every((job) => job === jobs[0] || isLike(job, first))) return [jobs];
  if (jobs.length < LEAST_WORK / 2) return [jobs];
  const groups: Group[] = [];
  const rest: Job[] = [];
  for (const job of jobs) {
    const check = job.plainCheck;
    let group = check && groups.find((each) => areAlike(each.check, check));
    if (group === undefined && check !== undefined && groups.length < MOST_GROUPS) {
      group = { check, jobs: [], work: 0 };
      groups.push(group);
    }
    if (group === undefined) {
      rest.push(job);
    } else {
      group.jobs.push(job);
      group.work += job.work;
    }
  }
  const worthwhile = groups.filter(({ work }) => work >= LEAST_WORK);
  if (worthwhile.length === 0) return [jobs];
  for (const { jobs: few, work } of groups) if (work < LEAST_WORK) rest.push(...few);
  const parts = worthwhile.map((group) => group.jobs);
  return rest.length > 0 ? [rest, ...parts] : parts;
}

function isLike(job: Job, check: Check): boolean {
  const other = job.plainCheck;
  return other !== undefined && areAlike(check, other);
}
