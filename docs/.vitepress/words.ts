import { fileOf } from './pages.js';

/** Words that people search for, and the page about them, which uses other ones. Search results show them next to its title. */
export const WORDS: Readonly<Record<string, readonly string[]>> = {
  'docs/guides/when-redis-fails.md': ['fail open', 'fail closed', 'outage'],
  'docs/guides/shadow-mode.md': ['dry run', 'report only'],
  'docs/guides/lists.md': ['allowlist', 'denylist', 'whitelist', 'blacklist', 'IP block'],
  'docs/guides/candidates.md': ['canary'],
  'docs/guides/console.md': ['dashboard', 'admin page'],
  'docs/algorithms/calendar-window.md': ['quota', 'monthly quota'],
  'docs/guides/blocking.md': ['ban', 'lockout'],
  'docs/guides/protecting-a-login.md': ['brute force', 'credential stuffing'],
  'docs/guides/regions.md': ['multi-region', 'geo', 'active-active', 'cross-region'],
  'docs/guides/plans-by-tier.md': ['premium', 'tiers', 'per-customer limits', 'dynamic limits'],
  'docs/guides/policy-files.md': ['YAML', 'config file'],
  'docs/guides/usage.md': ['metering', 'billing'],
  'docs/guides/in-code.md': ['background jobs', 'cron'],
  'docs/guides/other-languages.md': ['Python', 'redis-cli', 'EVALSHA'],
  'docs/reference/other-languages.md': ['busy-reply-threshold'],
  'docs/guides/jwt-and-passport.md': ['AuthGuard', 'access token', 'bearer'],
  'docs/guides/behind-a-proxy.md': [
    'trust proxy',
    'X-Forwarded-For',
    'load balancer',
    'ALB',
    'CloudFront',
    'X-Real-IP',
    'ingress',
  ],
  'docs/guides/serverless-and-pm2.md': ['Lambda', 'Vercel', 'cluster mode'],
  'docs/help/troubleshooting.md': ['not working', 'debug'],
  'docs/help/comparison.md': ['alternatives', 'versus'],
  'docs/guides/testing.md': ['Jest', 'Vitest', 'mock'],
};

interface Renderer {
  render: (source: string, env: object) => string;
}

/** The text that the site's search indexes: a page, with the words for it in its title. */
export function indexed(source: string, env: { path: string }, md: Renderer): string {
  const words = WORDS[fileOf(env)];
  const html = md.render(source, env);
  // A heading's text is before the link to itself.
  return words === undefined ? html : html.replace(/(<h1\b[^>]*>.*?)( <a\b)/, `$1 · ${words.join(', ')}$2`);
}
