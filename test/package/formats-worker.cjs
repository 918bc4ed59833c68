// Loads every entry point both ways, in Node without any loader, and tells the spec what it found.
require('reflect-metadata');
const path = require('node:path');
const { Controller, Get, Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { exports: entries } = require('nestjs-sluice/package.json');

function decorateMethod(type, name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, name);
  const decorated = Reflect.decorate(decorators, type.prototype, name, descriptor);
  Object.defineProperty(type.prototype, name, decorated ?? descriptor);
}

/** What an app answers whose limits are declared with one copy, and hold by the module of the other. */
async function answers(declaring, holding) {
  class ReportsController {
    constructor(logins) {
      this.logins = logins;
    }

    list() {
      return 'reports';
    }
  }
  class AppModule {}
  const limit = { name: 'reports', algo: 'fixed-window', rate: 1, interval: '1h' };
  declaring.InjectLimiter('login')(ReportsController, undefined, 0);
  decorateMethod(ReportsController, 'list', Get(), declaring.RateLimit(limit));
  Reflect.decorate([Controller('reports')], ReportsController);
  const imports = [holding.RateLimitModule.forRoot({ define: { login: { ...limit, name: 'login' } } })];
  Reflect.decorate([Module({ imports, controllers: [ReportsController] })], AppModule);

  const app = await NestFactory.create(AppModule, { logger: ['error'], abortOnError: false });
  const refusals = [];
  app.useGlobalFilters({
    catch(exception, host) {
      refusals.push(exception instanceof declaring.RateLimitExceededException);
      host.switchToHttp().getResponse().status(429).end();
    },
  });
  await app.listen(0, '127.0.0.1');
  const statuses = [];
  for (let i = 0; i < 2; i++) {
    statuses.push((await fetch(`${await app.getUrl()}/reports`, { headers: { connection: 'close' } })).status);
  }
  const injected = [
    app.get(declaring.LimiterService) instanceof holding.LimiterService,
    app.get(ReportsController).logins instanceof declaring.Limiter,
    app.get(declaring.getLimiterToken('login')) instanceof holding.Limiter,
  ];
  await app.close();
  return { statuses, refusals, injected };
}

function kindsOf(exported) {
  return Object.keys(exported)
    .map((key) => `${key}: ${typeof exported[key]}`)
    .toSorted();
}

async function main() {
  const names = Object.keys(entries).filter((entry) => !entry.endsWith('.json'));
  const loaded = {};
  for (const entry of names) {
    const name = `nestjs-sluice${entry.slice(1)}`;
    loaded[entry] = { required: require(name), imported: await import(name) };
  }
  const same = Object.fromEntries(
    Object.entries(loaded).map(([entry, { required, imported }]) => {
      const keys = [...new Set([...Object.keys(required), ...Object.keys(imported)])];
      return [entry, { exports: keys.length, different: keys.filter((key) => required[key] !== imported[key]) }];
    }),
  );
  // The other build, which Node would not choose: what it exports is the same by name.
  const twins = Object.fromEntries(
    Object.entries(loaded).map(([entry, { imported }]) => {
      const twin = require(path.join(__dirname, '../..', entries[entry].require));
      return [entry, { esm: kindsOf(imported), commonjs: kindsOf(twin) }];
    }),
  );
  const { required, imported } = loaded['.'];
  const apps = [await answers(required, imported), await answers(imported, required)];
  process.send({ same, twins, apps }, () => process.disconnect());
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
