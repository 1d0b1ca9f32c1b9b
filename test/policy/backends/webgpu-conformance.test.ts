/** Where the optional packages and an adapter are, a software one included (docs/backends.md); skipped with a word on stderr elsewhere. */
import { describe } from 'vitest';
import { probeBackends } from '../../../src/policy/backends/select.ts';
import { conforms } from './case-results.ts';
import { CASES } from './cases.ts';

const reason = (await probeBackends()).find(({ backend }) => backend === 'webgpu')?.reason ?? null;
if (reason !== null) console.warn(`SKIPPED: webgpu was not tested; ${reason}`);

/** tfjs's WebGPU kernels fail on tensors without elements, and give a wrong gradient of a slice in five dimensions: no step has either. */
const EMPTY_SLICE = 'slice 1,1 0,2 [4,5]';
const CASES_HERE = CASES.filter(
  ({ name, inputs }) => name !== EMPTY_SLICE && inputs.every(({ shape }) => shape.length < 5 && !shape.includes(0)),
);

describe.skipIf(reason !== null)('webgpu computes what cpu does, value and gradients', () => {
  conforms('webgpu', CASES_HERE);
});
