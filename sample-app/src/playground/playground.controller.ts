import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { Controller, Get, Header, Headers, NotFoundException, Param, StreamableFile } from '@nestjs/common';
import { SkipRateLimit } from 'nestjs-sluice';
import { STOPS, tour } from '../tour.js';
import { codeOf } from './code-of.js';

/** Where `npm run build:playground` puts the page. */
const FOLDER = new URL('../../../playground/dist/', import.meta.url);

/** The documentation of the repository. */
const DOCS = new URL('../../../docs/', import.meta.url);

const FILES = ['live.js', 'live.css', 'sluice-comparison.js', 'icon.svg'];

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/** All that the page loads and asks comes from this app. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A page that sends requests to the other routes. What it loads is not limited, or it would use what it shows. */
@Controller()
@SkipRateLimit()
export class PlaygroundController {
  @Get()
  @Header('Content-Type', 'text/html; charset=utf-8')
  @Header('Content-Security-Policy', POLICY)
  @Header('Cache-Control', 'no-cache')
  page() {
    return readFileSync(new URL('index.html', FOLDER), 'utf8');
  }

  /** What the page offers to send. */
  @Get('playground/routes')
  routes() {
    return STOPS.map((stop) => ({ ...stop, code: codeOf(stop), docs: `/playground/docs/${stop.docs}` }));
  }

  /** The same for a terminal. */
  @Get('tour')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  tour(@Headers('host') host: string) {
    return tour(`http://${host}`);
  }

  /** The pages that the routes name, and no others. */
  @Get('playground/docs/:folder/:page')
  @Header('Content-Type', 'text/plain; charset=utf-8')
  docs(@Param('folder') folder: string, @Param('page') page: string) {
    const file = STOPS.map(({ docs }) => docs).find((each) => each === `${folder}/${page}`);
    if (file === undefined) throw new NotFoundException(`There is no page ${folder}/${page}`);
    return readFileSync(new URL(file, DOCS), 'utf8');
  }

  @Get('playground/:file')
  @Header('Cache-Control', 'no-cache')
  file(@Param('file') file: string) {
    if (!FILES.includes(file)) throw new NotFoundException(`There is no file ${file}`);
    const type = TYPES.get(extname(file))!;
    return new StreamableFile(readFileSync(new URL(file, FOLDER)), { type });
  }
}
