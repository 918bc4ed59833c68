/**
 * What calls to others' APIs learn from responses: the upstreams that are known, and the types of parsers for others.
 * @module nestjs-sluice/outbound
 */
export { parseUpstream, type Upstream, type UpstreamName, upstreams } from './headers/upstreams.js';
export type { UpstreamLimit, UpstreamParser, UpstreamReport, UpstreamResponse } from './headers/upstream-report.js';
export type { FetchOptions, OutboundLimits, OutboundOptions } from './outbound-options.js';
