/** All that is timed, in the order of the page: what an app gets first, then one limit alone, then what grows. */
import { app } from './app.mjs';
import { decisions } from './decisions.mjs';
import { fleet } from './fleet.mjs';
import { bill } from './growth/bill.mjs';
import { cluster } from './growth/cluster.mjs';
import { instances } from './growth/instances.mjs';
import { keys } from './growth/keys.mjs';
import { limits } from './growth/limits.mjs';
import { log } from './growth/log.mjs';
import { refusals } from './growth/refusals.mjs';
import { onExpress, onFastify } from './http.mjs';
import { inProcess } from './in-process.mjs';
import { memory } from './memory.mjs';
import { mixed } from './mixed.mjs';
import { regions } from './regions.mjs';
import { imports } from './start/import.mjs';
import { install } from './start/install.mjs';
import { secondInstance } from './start/second-instance.mjs';
import { startUp } from './start/start-up.mjs';

/**
 * Each has a `name`; `measure(settings)`, and `section(results, page)`, which gives the paragraphs that the page has of it:
 * `page.chart(name, svg)` is one with a chart, `page.goalsOf(name, title)` are what is wanted of the case, or of one title of it, and whether it was reached,
 * `page.profileOf(title, profile)` those of a case that misses its target. The page begins with the `picture(results, page)` of a
 * case that has one.
 */
export const CASES = [
  app,
  mixed,
  fleet,
  regions,
  inProcess,
  imports,
  install,
  startUp,
  secondInstance,
  decisions,
  onExpress,
  onFastify,
  memory,
  keys,
  limits,
  log,
  instances,
  cluster,
  refusals,
  bill,
];
