/**
 * Limits calls to other APIs: clients whose calls wait for their turn, parsers for known upstreams, and the types for your own parsers.
 * @module nestjs-sluice/outbound
 */
export { OutboundLimiter } from './outbound-limiter.js';
export { parseUpstream, type Upstream, type UpstreamName, upstreams } from './headers/upstreams.js';
export type {
  UpstreamLimit,
  UpstreamParser,
  UpstreamReport,
  UpstreamResponse,
  ResponseHeaders,
} from '../../engine/limit-headers/upstream-report.js';
export type {
  BodyParser,
  FetchOptions,
  LearnedLimit,
  OutboundLimits,
  OutboundOptions,
  RetryOptions,
} from './outbound-options.js';
export type {
  AxiosAnswer,
  AxiosDefaultsLike,
  AxiosInstanceLike,
  AxiosOptions,
  AxiosRequest,
  LimitedAxios,
} from './clients/limited-axios.js';
export type {
  DispatchedRequest,
  DispatchedResponse,
  DispatcherOptions,
  LimitedDispatcher,
} from './clients/limited-dispatcher.js';
