/** Why a target is not reached, as profiles of this machine say; by the beginning of what is wanted. */
const REASONS = {
  '10,000 keys, 256 in flight, of the better peer':
    'The server sets the pace: of its 2.7 µs a check, a SET with a time to live takes 1.0 from Lua, its share of one MGET 0.3, packing and unpacking the state 0.35, the algorithm and the reply 1.0. The client could do a third more.',
  'one hot key': 'Here both are busy all the time; the client takes 1.6 to 2 µs a check, a third of it for promises.',
  'the same with a lease': 'Half of the time goes into the loop that measures: its promises and its look at the clock.',
  'three limits':
    'Three keys are read and written, where a peer counts three times: 3.2 µs of the server a limit, of which 1.6 are Redis and packing.',
  'client CPU': 'A promise, the text of the program, a key and a decision for each check; the peers share the first.',
  'one in flight':
    'The script makes its functions anew in each call: 11 µs on a server whose caches are cold. And a check waits for the end of the turn of the event loop, so that others can travel with it.',
  'in process':
    'A decision of eight fields, the list around it and a state for each check, where the peer changes one object: collecting them is 11 % of the time, the look-up of the counter by limit and identity another 11 %.',
  'requests/s with three limits':
    'The app, Redis and the client share two processors: what Redis takes, the app lacks. In the app, the two headers and the guard of Nest take most.',
};

/** A list of the reasons for what is not reached. */
export function reasons(reached) {
  const lines = reached.flatMap(({ what, reached: yes }) => {
    const reason = Object.entries(REASONS).find(([start]) => what.startsWith(start))?.[1];
    return yes ? [] : [`- **${what}**: ${reason ?? 'not looked into yet.'}`];
  });
  return lines.length === 0 ? '' : `What is not reached, and where the time goes:\n\n${lines.join('\n')}\n`;
}
