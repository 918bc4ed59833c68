/** The side of a Nest app that is timed in a process of its own; `apps.mjs` is the other one. */
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { profiled } from './profile.mjs';

/** Starts the app, sends its address, and answers with the processor time that it has used, or where that goes. */
export async function serve(AppModule, framework) {
  const started = performance.now();
  const adapter = framework === 'Fastify' ? [new FastifyAdapter()] : [];
  const app = await NestFactory.create(AppModule, ...adapter, { logger: false });
  await app.listen(0, '127.0.0.1');
  let stopProfile;
  let profile;
  const answer = async (question) => {
    if (question === 'profile') {
      profile = profiled(() => new Promise((resolve) => (stopProfile = resolve)));
      return {};
    }
    if (question === 'profiled') {
      stopProfile();
      return { profile: await profile };
    }
    const { user, system } = process.cpuUsage();
    return { cpuMicros: user + system };
  };
  process.on('message', (question) => void answer(question).then((told) => process.send(told)));
  process.send({ url: await app.getUrl(), startMs: performance.now() - started });
}

/** Declares a handler of a controller without decorators, since these files are not compiled. */
export function handle(Controller, name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(Controller.prototype, name);
  for (const decorator of decorators) decorator(Controller.prototype, name, descriptor);
}
