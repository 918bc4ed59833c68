import { OPERATION_HELP } from '../app/help.js';

/** What a command does to a list. */
export type ListAction = 'deny' | 'allow' | 'unlist';

const WHAT: Readonly<Record<ListAction, string>> = {
  deny: 'Refuses clients, on all instances, without a call to Redis. An entry on the other\nlist is moved.',
  allow: 'Exempts clients from one limit or from all, on all instances. An entry on the other\nlist is moved.',
  unlist: "Ends an entry that 'deny' or 'allow' added. One of the module's options or of a policy\nis in force again.",
};

const FOR = '  --for <time>        for how long, at most 1 year; until unlisted unless given\n';

/** The texts of `--help`. */
export const LIST_HELP = Object.fromEntries(
  Object.entries(WHAT).map(([action, does]) => [
    action,
    `Usage: nestjs-sluice ${action} <who> [--name <limit>] --redis <url>
       nestjs-sluice ${action} <who> [--name <limit>] --module <file>

${does} Prints the entry before and after.

<who> is an address or network, such as 203.0.113.7 or 10.0.0.0/8; an identity that
limits count by, such as tenant:acme; or the beginning of some: 'trial:*'.

Options:
  --name <limit>      the limit, as the app names it; all limits unless given
${action === 'unlist' ? '' : FOR}${OPERATION_HELP}
Exit codes: 0, 1 if nothing was changed: if Redis cannot be reached, no instance uses
the prefix or the limit${action === 'unlist' ? ', or there is no such entry' : ''}; 2 if the command line is wrong
`,
  ]),
) as Readonly<Record<ListAction, string>>;
