/** Imports a limiter once Nest and ioredis are there: `node --expose-gc import-process.mjs <import | require> <package>...`. */
import { createRequire } from 'node:module';
import 'reflect-metadata';
import '@nestjs/common';
import '@nestjs/core';
import '@nestjs/platform-express';
import 'ioredis';
import { costsOf } from './costs.mjs';

const [way, ...packages] = process.argv.slice(2);
const require = createRequire(import.meta.url);

const costs = await costsOf(async () => {
  for (const each of packages) {
    if (way === 'require') require(each);
    else await import(each);
  }
});
console.log(JSON.stringify(costs));
process.exit();
