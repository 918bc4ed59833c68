/** Gives Nest the logger back that it had before a spec: apps of specs change it for all apps of the process. */
import { afterAll } from '@jest/globals';
import { Logger } from '@nestjs/common';

const before = Logger['staticInstanceRef'];
afterAll(() => Logger.overrideLogger(before));
