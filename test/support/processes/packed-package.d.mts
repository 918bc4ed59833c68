/** A tarball of the package, and the paths of what is in it. */
export interface PackedPackage {
  tarball: string;
  paths: string[];
}

export function packArguments(destination: string): string[];
export function packedPackage(told: string, destination: string): PackedPackage;
