/**
 * Why a target is not reached: what is left, what it would take, and what was tried; by the beginning of what is wanted. The
 * times are µs of processor time by hand, the least of alternating rounds: they tell one way from another, not one machine from
 * another.
 */
const REASONS = {
  '10,000 keys, 256 in flight, of the better peer':
    'of the client’s time 13 to 27 % is the write to the socket and some 12 % the connection’s commands and parser, which is the app’s own. Of Redis’ 2.6 µs a quarter are the commands that read and write the keys; the rest is Lua, which calls one for each write. Left is a connection of our own next to the app’s, for those 12 %. Tried: numbers as arguments instead of JSON (no gain), arguments as latin1 or buffers (no gain), no telemetry, cache and fallback (the row “everything off”), the clock once a turn (units that are stamped too early let more pass).',
  'the same, of autopipelined INCR':
    '`INCR` takes no script and gives one number, not a decision, so the rest of the line above holds for this one, too. Tried: as above, and turns halved from 16 or 40 checks on instead of 8 (within scatter).',
  'client CPU a decision':
    'as above; also, a decision is a promise and eight numbers, 1.7 kB with all that is made on its way. Tried: one promise instead of one a layer (7.0 µs became 2.0, kept), one timer for all deadlines (kept), arguments as latin1 or buffers (no gain).',
  'one hot key':
    'Redis takes 0.45 µs for each, the client 1.45: the promise, the decision and its part of the reply, which each caller gets of its own. Tried: replies in their order instead of looked up, and a key that follows itself looked for once (1.87 µs became 1.45, kept), the last map remembered (no gain), arguments as latin1 or buffers (no gain).',
  'the same with a prefetch':
    'no call is left to save: what remains is a promise, a decision and a look at the clock. Tried: a decision written out instead of copied (1.06 µs became 0.70, kept), each layer knows the one below (0.55 µs became 0.38, kept), the clock once a turn (units would be used after their time), the last map remembered (no gain).',
  'three limits, of the better peer':
    'one call decides all three, but three counters are read and written all the same, 2.8 µs each on Redis. Tried: one command for all reads (kept), `SETRANGE` where the time to live stays (kept), numbers as arguments instead of JSON (no gain).',
  'one in flight, p50':
    'a call that does nothing takes most of it: the row “EVALSHA”. Tried: `GET` for a lone check instead of `MGET` (0.3 µs less, but a key of another type fails the call), parameters as arguments instead of JSON (no gain), a check sent at once instead of at the end of its turn (28 µs of the client became 23, kept).',
  'Redis CPU of a lone check':
    'the peer’s script is two commands without arithmetic. Ours was 28.0 µs and is 14.6, the peer’s 12.7. Tried: parameters as arguments instead of JSON (no gain), the time to live read before the value is written over (no gain), `GET` instead of `MGET` (0.3 µs less, but a key of another type fails the call).',
  'one limit, 16 in flight':
    'eight checks share a call, and the fixed cost of a call is spread over them alone: 3.6 µs of the client each, and 2.8 where 128 share one. Tried: turns halved from 16 or 40 checks on instead of 8 (within scatter), the next call held back until the last one is answered (4.2 µs instead of 3.6), arguments as latin1 or buffers (no gain).',
  'in process':
    'the row “a promise of what is known” is what is left of a limiter that counts nothing. Left: a place in a map of 10,000 keys (a fifth, misses of the processor’s cache), the clock, a decision of eight numbers. Tried: states written over in place (kept), each layer knows the one below and no look for a span where the context is empty (15 % less, kept), the last map remembered (no gain), the clock once a turn (no gain in process, and wrong on Redis).',
  'the same by `consumeSync`':
    'with 10,000 keys the misses of the processor’s cache outweigh the promise that is saved; with 1,000 keys on a quiet machine it was 1.4 to 1.5. Tried: one check past the layers that would add no work (0.7 µs became 0.23, kept), whether the store counts here remembered (kept), the limit of a key looked up once (kept).',
  'requests/s of an app':
    'our own functions take 7 % of an app’s time in process and 9 % on Redis, none of them more than 1 %. Tried: what is known of a request in a `WeakMap` (14 µs more, garbage collection), as a property of the request (4 µs more: the router is slower with such a request), at its raw headers (kept); no promise in process (kept); no look at what a response does not have (kept).',
  'µs of the app more':
    'as above. On Redis a request lives until its answer is there, so more of it survives a collection of garbage. Tried: headers from parts that do not change (kept), one object for a check and its answer (kept), the next call held back until the last one is answered (no gain: 17 checks share a call as it is).',
  'capacity of a Cluster of':
    'checks of one node share a write, but a script call has keys of one slot, so nearly each check is a call of its own. Tried: one call a node with keys that are not declared (a third of the cost, but no Cluster promises to allow that), one string for all commands of a node (23.1 µs of the client against 22.6), a corked connection alone (26.4).',
  'what one Redis core carries':
    'four callers of an instance give its calls four checks at most, so what a call takes of the kernel and of Redis, some 30 µs, is spread over few. Left: fewer instances with more callers each. Tried: groups of different limits in one fast call (kept), tables that are made with all of their fields (kept), `gather` (callers that wait for their answers send no more meanwhile, so none can join).',
  '20 limits, ':
    'with few in flight, client and Redis wait for each other: a turn is sent when its last check has come, and the next one begins with the reply. Tried: groups of alike checks in one fast call (Redis took 20 to 45 µs for four checks and takes 18, kept), checks with common keys one after another with one state a key (kept), limits written once a call (kept).',
  'Redis CPU of 20 limits, ':
    'a call takes some 7 µs regardless of its contents, and each limit more 4 of it: its part of the program, two commands and some arithmetic. Tried: as above.',
  'import, ':
    'nearly all of it is V8, which compiles 0.6 MB of code; a part that the core never loads costs nothing. Tried: one file with the packages that it needs (393 ms became 61, kept), CommonJS alone (fails in four places, decision 27), the packages in a file of CommonJS for both formats (twice as long).',
  'the same, of throttler with its Redis storage': 'as above: the peer is 0.1 MB.',
  'tarball, ':
    'two formats of 1.6 and 1.7 MB, guides and schema. Tried: packages and scripts in one file for both formats (-120 kB, but the import takes twice as long), short names of variables (functions and classes keep theirs, so stack traces stay readable; kept), pieces that compress away (declarations, the page of the console; kept).',
  'start of 1,000 routes':
    'each declaration has a rule and counters of its own, and the module looks at every method of the app for decorators. Tried: equal limits read once (964 ms became 358, with the two that follow; kept), OpenAPI described when a document is made (kept), option rows made once (kept).',
  'ms that an instance starts later':
    'a quarter is garbage collection, a fifth the JSON of each record, the rest the replies and growing maps. Left: tables built page by page and swapped. Tried: the next page asked for while the last one is read (kept), no map of all records in between (kept), the parsed record kept instead of a copy (no gain).',
};

/** Whether what is wanted has a reason why it is not reached. */
export const hasReason = (what) => Object.keys(REASONS).some((start) => what.startsWith(start));

/** A list of the reasons for what is not reached. */
export function reasons(reached) {
  const missed = reached.filter(({ reached: yes }) => !yes).map(({ what }) => what);
  const lines = Object.entries(REASONS).flatMap(([start, reason]) => {
    const of = missed.filter((what) => what.startsWith(start));
    return of.length === 0 ? [] : [`- **${of.join('; ')}**: ${reason}`];
  });
  return lines.length === 0 ? '' : `Targets that are not reached, why, and what was tried:\n\n${lines.join('\n')}\n`;
}
