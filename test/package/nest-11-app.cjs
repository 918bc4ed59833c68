// A NestJS 11 application in CommonJS, copied next to an installed package by the spec. Plain JavaScript, so the
// decorators are applied by hand.
require('reflect-metadata');
const { Controller, Get, Module } = require('@nestjs/common');
const { RateLimit, RateLimitModule } = require('nestjs-sluice');

class ReportsController {
  list() {
    return { reports: [] };
  }
}

class AppModule {}

function decorateMethod(type, name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, name);
  const decorated = Reflect.decorate(decorators, type.prototype, name, descriptor);
  Object.defineProperty(type.prototype, name, decorated ?? descriptor);
}

decorateMethod(ReportsController, 'list', Get(), RateLimit({ algo: 'fixed-window', rate: 2, interval: '1m' }));
Reflect.decorate([Controller('reports')], ReportsController);
Reflect.decorate([Module({ imports: [RateLimitModule.forRoot()], controllers: [ReportsController] })], AppModule);

module.exports = { AppModule };
