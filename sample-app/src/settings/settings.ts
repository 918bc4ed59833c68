import { Injectable } from '@nestjs/common';

/** What the environment says. */
@Injectable()
export class Settings {
  /** `PORT`: where the app listens; 0 is any free port. */
  readonly port = readPort(process.env['PORT']);
  /** `REDIS_URL`: where the counters live; without it, in this process. */
  readonly redisUrl = process.env['REDIS_URL'] || undefined;

  /** `DEMO_TRAFFIC`: whether visitors are made up, `on` or `off`. */
  readonly demoTraffic = readSwitch('DEMO_TRAFFIC', process.env['DEMO_TRAFFIC']);

  /** Where the counters live, for people; a password in the URL is not shown. */
  get store(): string {
    return this.redisUrl === undefined
      ? 'in this process (set REDIS_URL for Redis)'
      : `Redis at ${hostOf(this.redisUrl)}`;
  }
}

function readPort(value = '3000'): number {
  const port = Number(value);
  if (value.trim() === '' || !Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error(`PORT: expected a whole number from 0 to 65535, received '${value}'`);
  }
  return port;
}

function readSwitch(name: string, value = 'on'): boolean {
  if (value !== 'on' && value !== 'off') throw new Error(`${name}: expected on or off, received '${value}'`);
  return value === 'on';
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}
