import { ensureBrowser, opensPages } from './browser/browser-binary.mjs';
import { startSharedRedis } from './redis/shared-redis.mjs';

export default async function globalSetup({ testPathPatterns }) {
  try {
    // The workers find it in their environment.
    if (opensPages(testPathPatterns.patterns, process.env.TEST_TIER)) process.env.TEST_BROWSER = ensureBrowser();
    await startSharedRedis();
    if (process.env['TEST_COVERAGE'] !== undefined) process.env['NODE_V8_COVERAGE'] = process.env['TEST_COVERAGE'];
  } catch (error) {
    // Jest would wrap the message in its own and a stack trace. One line that says what to do is worth more.
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
