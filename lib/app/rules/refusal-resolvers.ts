import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { CallableClasses } from '../../engine/options/callable-classes.js';
import { REFUSAL_EXPECTED, type RefusalFunction } from '../http/refusal-answer.js';

/** The instances of the classes that create responses to rejected requests. */
@Injectable()
export class RefusalResolvers extends CallableClasses<'resolve', RefusalFunction> {
  constructor(modules: ModuleRef) {
    super(modules, 'resolve', REFUSAL_EXPECTED);
  }
}
