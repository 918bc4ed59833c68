import { startSharedRedis } from './shared-redis.mjs';

export default async function globalSetup() {
  try {
    await startSharedRedis();
  } catch (error) {
    // Jest would wrap the message in its own and a stack trace. One line that says what to do is worth more.
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
