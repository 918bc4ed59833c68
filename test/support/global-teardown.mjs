import { stopSharedRedis } from './redis/shared-redis.mjs';

export default stopSharedRedis;
