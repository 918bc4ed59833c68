export function sourceOf(entry: string): string;
