// The same of CommonJS, as most apps are built.
require('reflect-metadata');
const { Module } = require('@nestjs/common');
const { RateLimitModule } = require('nestjs-sluice');

class AppModule {}
const limits = { define: { api: { algo: 'fixed-window', rate: 10, interval: '1h' } } };
Module({ imports: [RateLimitModule.forRoot(limits)] })(AppModule);
exports.AppModule = AppModule;
