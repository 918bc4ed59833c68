/** A spec that cannot be imported. */
import { it } from '@jest/globals';

it('passes', () => {});

throw new Error('thrown at import');
