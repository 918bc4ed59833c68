/** Where the reports are. */
export const REPORTS: string;
export function apiReports(folder?: string): Map<string, string>;
