/** The script that decides, with the algorithms and features of the package and further ones: their Lua by their names. */
export declare function composeScript(
  moreAlgorithms?: Readonly<Record<string, string>>,
  moreFeatures?: Readonly<Record<string, string>>,
): string;

/** A file of lua/, as the server is sent it. */
export declare function read(file: string): string;
