/** Tests that need TensorFlow's C library: run where `isogym setup native` has run, skipped with a word on stderr elsewhere. */
import { findAddons } from '../../../src/policy/backends/addon.ts';

export const NATIVE = findAddons().length > 0;
if (!NATIVE) console.warn('SKIPPED: what needs the native backend was not tested; isogym setup native');

/** On a box with a GPU the same tests run on it: `ISOGYM_TEST_BACKEND=cuda`. */
export const NATIVE_BACKEND = process.env.ISOGYM_TEST_BACKEND === 'cuda' ? 'cuda' : 'native';
