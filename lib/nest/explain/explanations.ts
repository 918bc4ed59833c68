import { Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { Rule } from '../../app/rules/rule.js';
import type { Explainer } from './explainer.js';
import type { Explanation } from './explanation.js';

/** Explains limits. The code for it is loaded with the first question, which most apps never ask. */
@Injectable()
export class Explanations {
  private explainer: Promise<Explainer> | undefined;

  constructor(private readonly modules: ModuleRef) {}

  /** Explains a limit, a route or a request. Rejects with `RateLimitConfigError` if it is unknown. */
  async explain(asked: unknown): Promise<Explanation> {
    return (await this.loaded()).explain(asked);
  }

  /** Explains a limit for code that has its rule, which may be declared anywhere. */
  async explainRule(rule: Rule, key: string, ip: string | undefined): Promise<Explanation> {
    return (await this.loaded()).explainRule(rule, key, ip);
  }

  private loaded(): Promise<Explainer> {
    this.explainer ??= this.load();
    return this.explainer;
  }

  private async load(): Promise<Explainer> {
    try {
      const { Explainer: OfApp } = await import('./explainer.js');
      return await this.modules.create(OfApp);
    } catch (error) {
      // The next question tries again.
      this.explainer = undefined;
      throw error;
    }
  }
}
