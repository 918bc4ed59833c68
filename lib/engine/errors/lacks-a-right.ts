/** Error replies of Redis and Valkey, from 6.2 on, for a missing permission of the user, in a command or in a script. */
export const LACKS_A_RIGHT = /^NOPERM|ACL failure in script|user executing the script can't/;
/** Error replies that mean a missing or wrong password, and what clients make of them. */
export const REJECTS_LOGIN = /WRONGPASS|NOAUTH|invalid password/;
