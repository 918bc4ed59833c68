import fc from 'fast-check';

/** Properties draw the same values in each run: a mutant is found always or never. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 1 });
