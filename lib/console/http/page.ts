import { randomBytes } from 'node:crypto';
import { brotliDecompressSync } from 'node:zlib';
import { headerOf } from '../../app/transports/request-reader.js';
import { consoleMessages } from '../../engine/errors/messages/console.js';
import { PAGE_SCRIPT, PAGE_STYLE, type PageAsset } from '../page.generated.js';
import { ConsoleProblem } from '../problem.js';
import type { Answer, Call } from './route.js';

/** The content security policy of the page: it may run its own script and call this console. */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const SCRIPT_NAME = `console.${PAGE_SCRIPT.hash}.js`;
const STYLE_NAME = `console.${PAGE_STYLE.hash}.css`;

/**
 * The page. Its links are relative to its own address, so that it works behind any proxy that keeps the last part of the path.
 *
 * @param base the console's address relative to the page: empty, or the last part of its path and a slash
 */
function pageOf(base: string, nonce: string): string {
  const at = escaped(base);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Rate limits</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<meta name="console-base" content="${at}">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${at}assets/${STYLE_NAME}">
<script type="module" nonce="${escaped(nonce)}" src="${at}assets/${SCRIPT_NAME}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This console needs JavaScript.</noscript>
</body>
</html>
`;
}

const ASSETS = new Map([
  [SCRIPT_NAME, assetOf(PAGE_SCRIPT, 'text/javascript; charset=utf-8')],
  [STYLE_NAME, assetOf(PAGE_STYLE, 'text/css; charset=utf-8')],
]);

export function servePage({ exchange, folder }: Call): Answer {
  const nonce = randomBytes(16).toString('base64');
  // Links are relative to the folder of the page.
  const base = exchange.path.endsWith('/') ? '' : `${folder}/`;
  return () =>
    exchange.send(200, pageOf(base, nonce), {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policyOf(nonce),
    });
}

export function serveAsset({ exchange }: Call): Answer {
  const { params, headers } = exchange.request;
  // An unknown file belongs to an older version.
  const asset = ASSETS.get(params?.['file'] ?? '');
  if (asset === undefined) throw new ConsoleProblem(404, consoleMessages.noFile());
  const readsBrotli = /(?:^|,)\s*br\s*(?:,|;|$)/.test(headerOf(headers, 'accept-encoding') ?? '');
  return () =>
    exchange.file(readsBrotli ? asset.brotli : asset.plain(), {
      'content-type': asset.type,
      // The name contains a hash of the contents.
      'cache-control': 'private, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(readsBrotli && { 'content-encoding': 'br' }),
    });
}

/** A file of the page: compressed, and as it is for clients that don't accept Brotli. */
function assetOf({ brotli: text }: PageAsset, type: string) {
  const brotli = Buffer.from(text, 'base64');
  let plain: Buffer | undefined;
  return { type, brotli, plain: () => (plain ??= brotliDecompressSync(brotli)) };
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
