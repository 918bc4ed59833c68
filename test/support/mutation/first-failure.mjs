/** Properties draw the same values in each run: a mutant is found always or never. The first values that find it are enough. */
import fc from 'fast-check';
import '../jest/property-seed.mjs';

fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
