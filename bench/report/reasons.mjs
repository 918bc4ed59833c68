/** Why a target is not reached, as profiles of this machine say; by the beginning of what is wanted. */
const REASONS = {};

/** A list of the reasons for what is not reached. */
export function reasons(reached) {
  const lines = reached.flatMap(({ what, reached: yes }) => {
    const reason = Object.entries(REASONS).find(([start]) => what.startsWith(start))?.[1];
    return yes || reason === undefined ? [] : [`- **${what}**: ${reason}`];
  });
  return lines.length === 0 ? '' : `What is not reached, and where the time goes:\n\n${lines.join('\n')}\n`;
}
