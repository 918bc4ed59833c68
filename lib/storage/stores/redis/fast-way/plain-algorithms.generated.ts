// Made from lua/ by lua/embed.mjs. Do not edit.
export const PLAIN_ALGORITHMS: readonly string[] = ["gcra","token-bucket","fixed-window","sliding-window","calendar-window","leaky-bucket"];
