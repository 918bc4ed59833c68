// Runs the application until the spec lets go of it.
const { NestFactory } = require('@nestjs/core');
const { AppModule } = require('./nest-11-app.cjs');

async function main() {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'], abortOnError: false });
  await app.listen(0, '127.0.0.1');
  process.send({ port: app.getHttpServer().address().port });
  process.once('disconnect', () => process.exit());
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
