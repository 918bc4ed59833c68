/**
 * Properties draw the same values in each run, so that no change fails by what was drawn by chance. `PROPERTY_SEED` in the
 * environment is another whole number, or `new` for values that nobody has drawn before.
 */
import fc from 'fast-check';

const { seed: _before, ...others } = fc.readConfigureGlobal();
// The rest of the suite continues where `npm test` stopped: it makes other runs of the same properties.
const given = process.env['PROPERTY_SEED'] ?? (process.env['TEST_TIER'] === 'rest' ? '2' : '1');
if (given !== 'new' && !Number.isInteger(Number(given))) {
  throw new Error(`PROPERTY_SEED: expected a whole number or new, received '${given}'`);
}
fc.configureGlobal(given === 'new' ? others : { ...others, seed: Number(given) });
