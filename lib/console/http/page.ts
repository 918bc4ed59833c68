import { brotliDecompressSync } from 'node:zlib';
import { PAGE_SCRIPT, PAGE_STYLE, type PageAsset } from '../page.generated.js';

/** What the page may do: run its own script, and talk to this console. */
export function policyOf(nonce: string): string {
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
 * The page. Its links are relative to its own address, so that it works behind any proxy that keeps the last part of it.
 *
 * @param base where the console is, as seen from the page: empty, or the last part of its path and a slash
 */
export function pageOf(base: string, nonce: string): string {
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

/** A file of the page. */
export interface ServedAsset {
  readonly type: string;
  readonly brotli: Buffer;
  /** The uncompressed file, for clients that do not accept Brotli. */
  readonly plain: () => Buffer;
}

const ASSETS: ReadonlyMap<string, ServedAsset> = new Map([
  [SCRIPT_NAME, assetOf(PAGE_SCRIPT, 'text/javascript; charset=utf-8')],
  [STYLE_NAME, assetOf(PAGE_STYLE, 'text/css; charset=utf-8')],
]);

/** A file of the page by name; `undefined` for unknown ones, such as those of an older version. */
export function assetNamed(name: string): ServedAsset | undefined {
  return ASSETS.get(name);
}

function assetOf({ brotli: text }: PageAsset, type: string): ServedAsset {
  const brotli = Buffer.from(text, 'base64');
  let plain: Buffer | undefined;
  return { type, brotli, plain: () => (plain ??= brotliDecompressSync(brotli)) };
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
