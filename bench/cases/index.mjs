/** All that is timed, in the order of the page. */
import { decisions } from './decisions.mjs';
import { bill } from './growth/bill.mjs';
import { cluster } from './growth/cluster.mjs';
import { instances } from './growth/instances.mjs';
import { keys } from './growth/keys.mjs';
import { limits } from './growth/limits.mjs';
import { log } from './growth/log.mjs';
import { refusals } from './growth/refusals.mjs';
import { onExpress, onFastify } from './http.mjs';
import { memory } from './memory.mjs';

/**
 * Each has a `name`; `measure(settings)`, and `section(results, page)`, which gives the paragraphs that the page has of it:
 * `page.chart(name, svg)` is one with a chart, `page.profileOf(title, profile)` are those of a case that misses its target.
 */
export const CASES = [decisions, onExpress, onFastify, memory, keys, limits, log, instances, cluster, refusals, bill];
