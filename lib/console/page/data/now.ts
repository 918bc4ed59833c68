import { useEffect, useState } from 'preact/hooks';
import { Store } from './store.js';

/** How much the server's clock is ahead of this browser's, in milliseconds. */
export const skew = new Store(0);

/** The time by the server's clock. The component is rendered again each second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 1_000);
    return () => window.clearInterval(timer);
  }, []);
  return now + skew.value;
}
