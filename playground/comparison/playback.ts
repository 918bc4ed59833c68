import { useEffect, useState } from 'preact/hooks';
import { SPAN } from '../simulation/traffic.js';

/** How long an interval lasts while the simulation is played, in milliseconds. */
const INTERVAL_MS = 2500;
/** How often it is drawn meanwhile, in milliseconds. */
const FRAME_MS = 33;

/** The simulation, played from its beginning. */
export interface Playback {
  /** How far it has come, in intervals; nothing while it is not played. */
  readonly at: number | undefined;
  readonly toggle: () => void;
}

/** Plays the simulation when it is told to, to its end. */
export function usePlayback(): Playback {
  const [at, setAt] = useState<number>();
  const isPlaying = at !== undefined;
  useEffect(() => {
    if (!isPlaying) return undefined;
    const start = performance.now();
    let drawn = start;
    let frame = 0;
    const draw = (now: number) => {
      frame = requestAnimationFrame(draw);
      if (now - drawn < FRAME_MS) return;
      drawn = now;
      const next = (now - start) / INTERVAL_MS;
      setAt(next < SPAN ? next : undefined);
    };
    frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  }, [isPlaying]);
  return { at, toggle: () => setAt(isPlaying ? undefined : 0) };
}
