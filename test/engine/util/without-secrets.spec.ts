import { expect, it } from '@jest/globals';
import { withoutSecrets, withoutSecretsIn } from '../../../lib/engine/util/without-secrets.js';

const SECRET = 'kJ8+/x3Y1mQ=';

it.each([
  `cache.redis.example.net:6380,password=${SECRET},ssl=True,abortConnect=False`,
  `cache.redis.example.net:6380,password=a,b@c;d&e ${SECRET},ssl=True`,
  `cache.redis.example.net:6380,user=app,PWD=${SECRET}`,
  `cache:6380;Password = ${SECRET}`,
  `cache:6380,accessKey=${SECRET}`,
  `Endpoint=cache;SharedAccessKey=${SECRET}`,
  `redi://user:${SECRET}@host:6379`,
  `redis://user:my@token=${SECRET}@host:6379`,
  `redis://:${SECRET}/@host:6379/0`,
  `user:${SECRET}@host:6379`,
  `redis://host:6379?password=a@${SECRET}`,
  `redis://host:6379/0?db=1&auth_token=${SECRET}`,
  `redis://host:6379,password=${SECRET}`,
  `host:6379:${SECRET}`,
  `redis-cli -h host -a ${SECRET}`,
  `redis-cli --pass ${SECRET} -h host`,
  `redis-cli -u redis://default:${SECRET}@host:6379`,
  `REDIS_PASSWORD=${SECRET}`,
  `{ host: 'x', "password": "${SECRET}" }`,
  `{ host: 'x', password: '${SECRET}' }`,
  'AbCdEfGhIj0123456789KlMnOp=',
])('hides the secret of %j', (text) => {
  expect(String(withoutSecrets(text))).toContain('***');
  expect(withoutSecrets(text)).not.toContain('J8');
  expect(withoutSecrets(text)).not.toContain('KlMn');
  expect(withoutSecrets([text])).toEqual([withoutSecrets(text)]);
});

it.each([
  '',
  'localhost:6379',
  'redis://localhost:6379/0',
  'http://x',
  'not a url',
  'redis-auth.internal:6379',
  'rediss://[::1]:6380',
])('leaves %j as it is', (text) => {
  expect(withoutSecrets(text)).toBe(text);
  expect(withoutSecretsIn(text)).toBe(text);
});

it('keeps what helps to find the mistake', () => {
  expect(withoutSecrets(`cache:6380,password=${SECRET},ssl=True`)).toBe('cache:6380,password=***');
  expect(withoutSecrets(`redi://user:${SECRET}@host:6379`)).toBe('redi://***@host:6379');
  expect(withoutSecrets({ host: 'x', password: SECRET })).toEqual({ host: '***', password: '***' });
});

it('hides secrets within a message', () => {
  const message = `getaddrinfo ENOTFOUND cache,password=${SECRET} of '--redis redis://a:${SECRET}@h' in 'x'`;
  expect(withoutSecretsIn(message)).toBe("getaddrinfo ENOTFOUND cache,password=*** of '--redis redis://***@h' in 'x'");
  const example = "wants the URL 'rediss://app:<password>@h:6380', or redis://user:password@host:port";
  expect(withoutSecretsIn(example)).toBe(example);
  const refused = 'WRONGPASS invalid username-password pair or user is disabled.';
  expect(withoutSecretsIn(refused)).toBe(refused);
});
