/** Makes one call, and nothing else. */
export function fetchOnce(url, headers) {
  return fetch(url, { headers });
}
