import { Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LimiterService, RateLimitModule } from 'nestjs-sluice';

/** Decorates a method by hand: runtimes differ in the decorators that they read. */
export function decorate(type, method, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, method);
  const decorated = Reflect.decorate(decorators, type.prototype, method, descriptor);
  Object.defineProperty(type.prototype, method, decorated ?? descriptor);
}

export function decorateClass(type, ...decorators) {
  Reflect.decorate(decorators, type);
}

export function route(type, method, ...decorators) {
  decorate(type, method, Get(method), ...decorators);
}

/** The module of an app. */
export function appModule(options, controllers = []) {
  class AppModule {}
  decorateClass(AppModule, Module({ imports: [RateLimitModule.forRoot(options)], controllers }));
  return AppModule;
}

/** Gives the limiters of an app to a function, and closes the app behind it. */
export async function withLimiters(options, take) {
  const app = await NestFactory.createApplicationContext(appModule(options), { logger: false, abortOnError: false });
  try {
    return await take(app.get(LimiterService));
  } finally {
    await app.close();
  }
}

/** Gives the address of an app that listens to a function, and closes the app behind it. */
export async function withServer(adapter, options, controllers, take) {
  const settings = { logger: false, abortOnError: false };
  const app = await NestFactory.create(appModule(options, controllers), adapter, settings);
  try {
    await app.listen(0, '127.0.0.1');
    return await take(app.getHttpServer().address().port);
  } finally {
    await app.close();
  }
}

/** Tries until a condition holds. */
export async function until(condition, timeoutMs = 10_000) {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`did not hold within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => void setTimeout(resolve, 20));
  }
}
