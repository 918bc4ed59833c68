import type { Provider } from '@nestjs/common';
import { Explainer } from './explain/explainer.js';
import { LimitsInQuestion } from './explain/limits-in-question.js';
import { Answers } from './request/answers.js';
import { Completions } from './request/completions.js';
import { DeniedAddresses } from './request/denied-addresses.js';
import { DelayedRequests } from './request/delayed-requests.js';
import { RequestCheck } from './request/request-check.js';
import { RejectedRequests } from './request/rejected-requests.js';
import { RequestLimiter } from './request/request-limiter.js';
import { Requests } from './request/requests.js';
import { ResponseHeaders } from './request/response-headers.js';
import { ThrownRefusals } from './request/thrown-refusals.js';
import { SlowReaders } from './request/slow-readers.js';
import { Transports } from './request/transports.js';
import { KeptClientAddresses } from './client-addresses.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitInterceptor } from './rate-limit.interceptor.js';
import { ThrownRefusalsFilter } from './thrown-refusals.filter.js';
import { TrustedProxies } from './trusted-proxies.js';

/** The steps of a request: it is read, checked, answered and completed. */
export const requestProviders: readonly Provider[] = [
  Transports,
  KeptClientAddresses,
  TrustedProxies,
  Requests,
  ResponseHeaders,
  Answers,
  DeniedAddresses,
  RequestCheck,
  DelayedRequests,
  SlowReaders,
  Completions,
  RequestLimiter,
  RejectedRequests,
  LimitsInQuestion,
  Explainer,
  ThrownRefusals,
  ThrownRefusalsFilter,
  RateLimitGuard,
  RateLimitInterceptor,
];
