/**
 * Why a target is not reached: what is left, what it would take, and what was tried; by the beginning of what is wanted. The
 * times are µs of processor time by hand, the least of alternating rounds: they tell one way from another, not one machine from
 * another.
 */
const REASONS = {
  '10,000 keys, 256 in flight, of the better peer':
    'of the client’s time a quarter is the write to the socket and another fifth the connection’s commands and parser, which is the app’s own; of Redis’ time half is spent on the keys (find, read, write, expiry), whatever a script does. Left is a connection of our own, some 15 %, for a second connection in every app. Tried: numbers as arguments instead of JSON (no gain), arguments as latin1 or buffers (no gain), no telemetry, cache and fallback (the row “everything off”), the clock once a turn (units that are stamped too early let more pass).',
  'the same, of autopipelined INCR':
    'the script runs at a third of the cost of a command with its key in a script, but `INCR` needs no script, no reply of two numbers, and no decision. Tried: as above.',
  'client CPU a decision':
    'as above; besides, a decision is a promise and eight numbers, 1.7 kB with all that is made on its way. Tried: one promise instead of one a layer (7.0 µs became 2.0), decisions written out instead of copied, one timer for all deadlines.',
  'one hot key':
    'Redis takes 0.45 µs for each, the client 1.45: the promise, the decision and its part of the reply, which each caller gets of its own. Tried: replies in their order instead of looked up (1.87 µs became 1.45, kept), the last key remembered (kept), the last map remembered (no gain).',
  'the same with a prefetch':
    'no call is left to save: 0.70 µs are a promise, a decision, a look at the clock and six layers that hand on. Tried: a decision written out instead of copied (1.06 µs became 0.70, kept), no telemetry (0.02 µs), the clock once a turn (units would be used after their time).',
  'three limits, of throttler':
    'one call decides all three, while each of the peer’s decides one; but three counters are found, read and written all the same, 2.8 µs each on Redis. Tried: one command for the reads (kept), `SETRANGE` where the time to live stays (kept), one key for several limits of an identity (limits that are shared, changed or cleared one by one would be one).',
  'one in flight, p50':
    'a script that does nothing takes nine tenths of what ours takes: the row “EVALSHA”. Left are 2 µs on Redis and 3 in the client. Tried: `GET` and `SET` with a condition instead of a script (not atomic over limits), `GET` for a lone check (0.3 µs, but a key of another type fails the call), a check sent at once instead of at the end of its turn (kept).',
  'Redis CPU of a lone check':
    'the peer’s script is two commands and no arithmetic. Ours reads its parameters (2 µs), and decides by the server’s time (0.3 µs) on values that are eight bytes and exact. Tried: parameters as arguments instead of JSON (no gain), the time to live read before the value is written over (1 command more), `GET` instead of `MGET` (0.3 µs, see above).',
  '16 in flight':
    'eight checks share a call, and what a call costs whatever it asks, some 30 µs of the client and of Redis for a write, a wake-up and a read, is spread over them alone. Tried: all 16 in one call (within 5 %: client and server take turns then), the next call held back until the last one is answered (a round trip more for every other check), a limit of 4 to 40 from which a turn is halved (within scatter).',
  'in process':
    'the row “a promise of what is known” is the most that any limiter with a promise can reach, and a multiple of 1.5 is beyond it or next to it. Left: a place in a map of 10,000 keys (a fifth, misses of the processor’s cache), the clock (0.04 µs), a decision of eight numbers. Tried: a state written over in place (kept), the last map remembered (no gain), the clock once a turn (no gain in process, and wrong).',
  'requests/s of an app':
    'the row of the guard that only sets two headers is what is left of any limiter; our own functions take 7 % of an app’s time in process and 9 % on Redis, and none of them more than 1 %. Tried: what is known of a request in a `WeakMap` (14 µs more, garbage collection), as a property of the request (4 µs: the router is slower with such a request), at its raw headers (kept); no promise in process (kept); no look at what a response does not have (kept).',
  'µs of the app more':
    'see the requests a second. On Redis a request lives until its answer is there, so more of it survives a collection of garbage, which is dearer by a third. Tried: headers from parts that do not change (kept), one object for a check and its answer (kept), calls held back until more is asked for (17 checks share a call as it is).',
  'capacity of a Cluster of 6':
    'checks of one node share a write, but a script call has keys of one slot, so nearly each check is a call: 10 µs of Redis instead of 2.6. Tried: one call a node with keys that are not declared (a third, but no Cluster promises to allow that), one string for all commands of a node (23.1 µs of the client against 22.6), a corked connection alone (26.4).',
};

/** A list of the reasons for what is not reached. */
export function reasons(reached) {
  const missed = reached.filter(({ reached: yes }) => !yes).map(({ what }) => what);
  const lines = Object.entries(REASONS).flatMap(([start, reason]) => {
    const of = missed.filter((what) => what.startsWith(start));
    return of.length === 0 ? [] : [`- **${of.join('; ')}**: ${reason}`];
  });
  return lines.length === 0 ? '' : `What is not reached, why, and what was tried:\n\n${lines.join('\n')}\n`;
}
