// Tests the application with the testing kit, and tells the spec what it saw.
const { Test } = require('@nestjs/testing');
const { createTestingStore, RateLimitTesting, TestClock } = require('nestjs-sluice/testing');
const { AppModule } = require('./nest-11-app.cjs');

const builder = () => Test.createTestingModule({ imports: [AppModule] });
const now = () => undefined;

async function statuses(builder, ...steps) {
  const app = (await builder.compile()).createNestApplication();
  await app.listen(0, '127.0.0.1');
  const seen = [];
  for (const step of steps) {
    step();
    seen.push((await fetch(`${await app.getUrl()}/reports`, { headers: { connection: 'close' } })).status);
  }
  await app.close();
  return seen;
}

async function main() {
  const clock = new TestClock();
  const later = () => clock.advance('1m');
  const disabled = await statuses(RateLimitTesting.disable(builder()), now, now, now);
  const store = createTestingStore({ clock });
  const counted = await statuses(RateLimitTesting.useStore(builder(), store), now, now, now, later);
  process.send({ disabled, counted }, () => process.disconnect());
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
