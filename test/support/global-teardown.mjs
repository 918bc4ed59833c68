import { stopSharedRedis } from './shared-redis.mjs';

export default stopSharedRedis;
