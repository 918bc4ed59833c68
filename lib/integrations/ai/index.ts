/**
 * Limits calls to language models through the AI SDK by the tokens that they use.
 * @module nestjs-sluice/ai
 */
export { limitModel, type LimitModelOptions, type ModelLimit } from './limit-model.js';
export type {
  LimitedModelMiddleware,
  ModelCall,
  ModelResult,
  ModelStream,
  TokenUsage,
  UsedTokens,
} from './model-types.js';
