/** The script that decides, with more algorithms than the package has: their Lua by their names. */
export declare function composeScript(more?: Readonly<Record<string, string>>): string;

/** A file of lua/, as the server is sent it. */
export declare function read(file: string): string;
