/** @module Conformance cases: every operation that isogym's models, losses and optimizers use, at shapes that have gone wrong. */
import * as tf from '@tensorflow/tfjs';
import { cachedAttention, HIDDEN, selfAttention } from '../../../src/policy/transformer/attention.ts';
import { normalise } from '../../../src/policy/transformer/norm.ts';
import { rotate } from '../../../src/policy/transformer/rotary.ts';
import { swiglu } from '../../../src/policy/transformer/swiglu.ts';
import { generator } from '../../../src/records/random.ts';
import { adamw } from '../../../src/train/adamw.ts';
import { FORBIDDEN } from '../../../src/train/batch.ts';
import { scoredLogprobs } from '../../../src/train/loss.ts';

export interface HostInput {
  readonly shape: readonly number[];
  readonly dtype: 'float32' | 'int32' | 'bool';
  readonly values: readonly number[];
}

export interface OpCase {
  readonly name: string;
  readonly inputs: readonly HostInput[];
  /** Uses nothing but its arguments, so that it can run on any backend and be differentiated. */
  readonly run: (...inputs: never[]) => tf.Tensor;
  /** Whether the gradients in the float32 inputs are compared as well. */
  readonly differentiable: boolean;
  /** Largest allowed |found − expected| / (1 + |expected|). */
  readonly tolerance: number;
}

const random = generator('conformance');

function floats(shape: readonly number[], low = -2, high = 2): HostInput {
  const values = Array.from({ length: size(shape) }, () => Math.fround(low + (high - low) * random()));
  return { shape, dtype: 'float32', values };
}

function integers(shape: readonly number[], below: number): HostInput {
  return { shape, dtype: 'int32', values: Array.from({ length: size(shape) }, () => Math.floor(below * random())) };
}

function flags(shape: readonly number[]): HostInput {
  return { shape, dtype: 'bool', values: Array.from({ length: size(shape) }, () => (random() < 0.5 ? 0 : 1)) };
}

function given(values: readonly number[], dtype: HostInput['dtype'] = 'float32'): HostInput {
  return { shape: [values.length], dtype, values };
}

function size(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

const list: OpCase[] = [];

type Options = { readonly differentiable?: boolean; readonly tolerance?: number };

function add(name: string, inputs: readonly HostInput[], run: OpCase['run'], options: Options = {}): void {
  const shapes = inputs.map(({ shape, dtype }) => `${dtype === 'float32' ? '' : dtype}[${shape}]`).join(' ');
  const { differentiable = true, tolerance = 1e-5 } = options;
  list.push({ name: `${name} ${shapes}`, inputs, run, differentiable, tolerance });
}

// Elementwise, one operand.
const unary: readonly (readonly [string, (x: tf.Tensor) => tf.Tensor, number, number])[] = [
  ['neg', (x) => tf.neg(x), -2, 2],
  ['square', (x) => tf.square(x), -2, 2],
  ['exp', (x) => tf.exp(x), -20, 5],
  ['log', (x) => tf.log(x), 0.1, 9],
  ['sqrt', (x) => tf.sqrt(x), 0.1, 9],
  ['rsqrt', (x) => tf.rsqrt(x), 0.1, 9],
  ['sigmoid', (x) => tf.sigmoid(x), -9, 9],
  ['clipByValue', (x) => tf.clipByValue(x, -0.5, 0.75), -2, 2],
  ['clone', (x) => tf.clone(x), -2, 2],
  ['onesLike', (x) => tf.mul(tf.onesLike(x), x), -2, 2],
  ['zerosLike', (x) => tf.add(tf.zerosLike(x), x), -2, 2],
  ['cast to float32', (x) => tf.cast(x, 'float32'), -2, 2],
];
for (const [name, run, low, high] of unary) {
  for (const shape of [[], [1], [7], [3, 5], [0, 4], [33, 129]]) add(name, [floats(shape, low, high)], run);
}
add('exp of what underflows and of zero', [given([-1e9, -200, -90, -86, -1, 0, 1, 80])], (x: tf.Tensor) => tf.exp(x));
add('cast of fractions to int32', [given([-1.5, -0.5, 0, 0.5, 1.9])], (x: tf.Tensor) => tf.cast(x, 'int32'), {
  differentiable: false,
});
for (const from of [integers([3, 5], 3), flags([3, 5])]) {
  for (const dtype of ['float32', 'int32'] as const) {
    add(`cast to ${dtype}`, [from], (x: tf.Tensor) => tf.cast(x, dtype), { differentiable: false });
  }
}

// Elementwise, two operands, broadcast every way.
const pairs: readonly (readonly [readonly number[], readonly number[]])[] = [
  [
    [3, 4],
    [3, 4],
  ],
  [[3, 4], []],
  [[], [3, 4]],
  [[3, 4], [4]],
  [[4], [3, 4]],
  [
    [3, 4],
    [3, 1],
  ],
  [
    [3, 1],
    [1, 4],
  ],
  [
    [2, 3, 4],
    [2, 1, 4],
  ],
  [
    [5, 2, 3, 4],
    [3, 1],
  ],
  [[0, 4], [4]],
  [
    [33, 129],
    [33, 129],
  ],
];
const binary: readonly (readonly [string, (a: tf.Tensor, b: tf.Tensor) => tf.Tensor, boolean])[] = [
  ['add', (a, b) => tf.add(a, b), true],
  ['sub', (a, b) => tf.sub(a, b), true],
  ['mul', (a, b) => tf.mul(a, b), true],
  ['div', (a, b) => tf.div(a, b), true],
  ['maximum', (a, b) => tf.maximum(a, b), true],
  ['minimum', (a, b) => tf.minimum(a, b), true],
  ['greater', (a, b) => tf.greater(a, b), false],
  ['greaterEqual', (a, b) => tf.greaterEqual(a, b), false],
  ['less', (a, b) => tf.less(a, b), false],
  ['lessEqual', (a, b) => tf.lessEqual(a, b), false],
];
for (const [name, run, differentiable] of binary) {
  for (const [a, b] of pairs) {
    const second = name === 'div' ? floats(b, 0.5, 2) : floats(b);
    // tfjs's own gradient of these two does not broadcast.
    const broadcasts = a.join() !== b.join() && (name === 'maximum' || name === 'minimum');
    add(name, [floats(a), second], run, { differentiable: differentiable && !broadcasts });
  }
}
for (const [a, b] of pairs.slice(0, 7)) {
  const exact = { differentiable: false };
  for (const [name, run] of [
    ['add', (x: tf.Tensor, y: tf.Tensor) => tf.add(x, y)],
    ['sub', (x: tf.Tensor, y: tf.Tensor) => tf.sub(x, y)],
    ['mul', (x: tf.Tensor, y: tf.Tensor) => tf.mul(x, y)],
    ['equal', (x: tf.Tensor, y: tf.Tensor) => tf.equal(x, y)],
  ] as const) {
    add(name, [integers(a, 4), integers(b, 4)], run, exact);
  }
  add('logicalAnd', [flags(a), flags(b)], (x: tf.Tensor, y: tf.Tensor) => tf.logicalAnd(x, y), exact);
  add('logicalOr', [flags(a), flags(b)], (x: tf.Tensor, y: tf.Tensor) => tf.logicalOr(x, y), exact);
}
add('pow', [floats([3, 4], 0.1, 3), floats([3, 4])], (a: tf.Tensor, b: tf.Tensor) => tf.pow(a, b));
add('addN', [floats([3, 5]), floats([3, 5]), floats([3, 5])], (...terms: tf.Tensor[]) => tf.addN(terms));
add('addN of one', [floats([3])], (x: tf.Tensor) => tf.addN([x]));
for (const shape of [
  [3, 4],
  [0, 4],
  [33, 129],
]) {
  add('where', [flags(shape), floats(shape), floats(shape)], (c: tf.Tensor, a: tf.Tensor, b: tf.Tensor) =>
    tf.where(c, a, b),
  );
}
add('where, broadcast', [flags([3, 1]), floats([3, 4]), floats([])], (c: tf.Tensor, a: tf.Tensor, b: tf.Tensor) =>
  tf.where(c, a, b),
);

// Reductions.
const axes: readonly (undefined | number | number[])[] = [undefined, 0, 1, 2, -1, [0, 1], [1, 2], [0, 2], [2, 1, 0]];
for (const axis of axes) {
  for (const keep of [false, true]) {
    for (const shape of [
      [3, 4, 5],
      [1, 7, 1],
      [9, 6, 2],
    ]) {
      const x = [floats(shape)];
      add(`sum ${axis} ${keep}`, x, (t: tf.Tensor) => tf.sum(t, axis, keep));
      add(`mean ${axis} ${keep}`, x, (t: tf.Tensor) => tf.mean(t, axis, keep));
      add(`max ${axis} ${keep}`, x, (t: tf.Tensor) => tf.max(t, axis, keep));
    }
  }
}
add('sum of none', [floats([0, 3])], (x: tf.Tensor) => tf.sum(x, 0));
add('sum of none', [floats([3, 0])], (x: tf.Tensor) => tf.sum(x, 1));
add('sum of int32', [integers([4, 3], 9)], (x: tf.Tensor) => tf.sum(x, 0), { differentiable: false });
add('sum of bool', [flags([4, 3])], (x: tf.Tensor) => tf.sum(x, 0), { differentiable: false });
add('sum of very many', [floats([300, 1000], 0, 1)], (x: tf.Tensor) => tf.sum(x), { tolerance: 1e-6 });
add('mean over rows', [floats([1537, 64])], (x: tf.Tensor) => tf.mean(x, 0));
add('sum over rows', [floats([1537, 65])], (x: tf.Tensor) => tf.sum(x, 0));

// Sampling inside the decode graph: sums up to each token, and the first of the largest.
for (const shape of [
  [3, 5],
  [33, 490],
  [1, 1],
]) {
  add('cumsum', [floats(shape, 0, 1)], (x: tf.Tensor) => tf.cumsum(x, 1));
  add('argMax', [floats(shape)], (x: tf.Tensor) => tf.argMax(x, 1), { differentiable: false });
  add('argMax of equal ones', [flags(shape)], (x: tf.Tensor) => tf.argMax(tf.cast(x, 'int32'), 1), {
    differentiable: false,
  });
}

for (const shape of [
  [3, 5],
  [2, 3, 4, 7],
  [33, 490],
  [2, 1],
]) {
  add('softmax', [floats(shape)], (x: tf.Tensor) => tf.softmax(x));
  add('logSoftmax', [floats(shape)], (x: tf.Tensor) => tf.logSoftmax(x));
}
add('softmax of a row with hidden columns', [given([1, -1e9, 2, -1e9])], (x: tf.Tensor) => tf.softmax(x));

// Products. Shapes below and above the size from which they go to XNNPACK.
const products: readonly (readonly [number, number, number])[] = [
  [1, 1, 1],
  [2, 3, 5],
  [1, 16, 24],
  [4, 1, 9],
  [13, 17, 19],
  [48, 24, 16],
  [64, 100, 3],
  [0, 3, 4],
  [3, 4, 0],
  [3, 0, 4],
];
for (const [m, k, n] of products) {
  for (const ta of [false, true]) {
    for (const tb of [false, true]) {
      for (const outer of [[], [3], [2, 3]]) {
        const a = floats([...outer, ...(ta ? [k, m] : [m, k])]);
        const b = floats([...outer, ...(tb ? [n, k] : [k, n])]);
        add(`matMul ${ta ? 'Aᵀ' : 'A'}·${tb ? 'Bᵀ' : 'B'}`, [a, b], (x: tf.Tensor, y: tf.Tensor) =>
          tf.matMul(x, y, ta, tb),
        );
      }
    }
  }
}
for (const [ta, tb] of [
  [true, false],
  [false, true],
] as const) {
  const a = floats(ta ? [700, 61] : [61, 700]);
  const b = floats(tb ? [130, 700] : [700, 130]);
  add(`matMul, long, ${ta} ${tb}`, [a, b], (x: tf.Tensor, y: tf.Tensor) => tf.matMul(x, y, ta, tb), {
    tolerance: 3e-5,
  });
}
for (const [a, b] of [
  [
    [3, 20, 16],
    [16, 9],
  ],
  [
    [3, 20, 16],
    [1, 16, 9],
  ],
  [
    [20, 16],
    [3, 16, 9],
  ],
  [
    [1, 20, 16],
    [3, 16, 9],
  ],
]) {
  // tfjs has no gradient for a product that broadcasts.
  add('matMul, one side shared', [floats(a ?? []), floats(b ?? [])], (x: tf.Tensor, y: tf.Tensor) => tf.matMul(x, y), {
    differentiable: false,
  });
}
add(
  'matMul with one weight under two shapes',
  [floats([30, 12]), floats([30, 24]), floats([12, 40])],
  (x: tf.Tensor, y: tf.Tensor, w: tf.Tensor) =>
    tf.concat([
      tf.reshape(tf.matMul(x, w), [-1]),
      tf.reshape(tf.matMul(y, tf.reshape(w, [24, 20])), [-1]),
      tf.reshape(tf.matMul(x, w), [-1]),
    ]),
);
add('matMul of a matrix with itself', [floats([40, 40])], (x: tf.Tensor) => tf.matMul(x, x));
add('matMul of a matrix with its transpose', [floats([40, 30])], (x: tf.Tensor) => tf.matMul(x, x, false, true));

// Moving elements.
for (const [shape, perm] of [
  [
    [3, 5],
    [1, 0],
  ],
  [
    [3, 4, 5],
    [0, 2, 1],
  ],
  [
    [3, 4, 5],
    [2, 1, 0],
  ],
  [
    [2, 3, 4, 5],
    [0, 2, 1, 3],
  ],
  [
    [2, 3, 4, 5],
    [0, 2, 3, 1],
  ],
  [
    [2, 1, 4, 1],
    [3, 2, 1, 0],
  ],
  [
    [64, 33],
    [1, 0],
  ],
] as const) {
  add(`transpose ${perm}`, [floats(shape)], (x: tf.Tensor) => tf.transpose(x, [...perm]));
}
add('reshape', [floats([3, 4])], (x: tf.Tensor) => tf.reshape(x, [2, -1]));
add('expandDims', [floats([3, 4])], (x: tf.Tensor) => tf.expandDims(x, 1));
add('squeeze', [floats([3, 1, 4])], (x: tf.Tensor) => tf.squeeze(x, [1]));
for (const [a, b, axis] of [
  [[2, 3], [5, 3], 0],
  [[2, 3], [2, 1], 1],
  [[2, 3, 4], [2, 3, 9], -1],
  [[2, 0], [2, 3], 1],
  [[2, 0], [2, 0], 1],
  [[300, 70], [300, 3], 1],
] as const) {
  add(`concat ${axis}`, [floats(a), floats(b)], (x: tf.Tensor, y: tf.Tensor) => tf.concat([x, y], axis));
}
add('concat of int32', [integers([2, 3], 9), integers([1, 3], 9)], (...x: tf.Tensor[]) => tf.concat(x, 0), {
  differentiable: false,
});
add('concat of bool', [flags([2, 3]), flags([2, 2])], (...x: tf.Tensor[]) => tf.concat(x, 1), {
  differentiable: false,
});
for (const axis of [0, 1, 2, -1]) {
  add(`stack ${axis}`, [floats([2, 3]), floats([2, 3]), floats([2, 3])], (...x: tf.Tensor[]) => tf.stack(x, axis));
}
add('stack of one', [floats([2, 3])], (x: tf.Tensor) => tf.stack([x], 1));
add('stack of scalars', [floats([]), floats([])], (...x: tf.Tensor[]) => tf.stack(x));
for (const axis of [0, 1, 2]) {
  add(`unstack ${axis}`, [floats([2, 3, 4])], (x: tf.Tensor) => {
    const [first, second] = tf.unstack(x, axis) as [tf.Tensor, tf.Tensor];
    return tf.sub(tf.mul(first, 2), second);
  });
}
for (const [shape, sizes, axis] of [
  [[4, 6], 2, 1],
  [[4, 6], [1, 3, 2], 1],
  [[4, 6], [4, 0], 0],
  [[2, 3, 4, 8], 2, -1],
  [[2, 6, 5], [2, 4], 1],
] as const) {
  add(`split ${sizes} ${axis}`, [floats(shape)], (x: tf.Tensor) => {
    const parts = tf.split(x, typeof sizes === 'number' ? sizes : [...sizes], axis);
    return tf.concat(parts.toReversed(), axis);
  });
}
for (const [shape, begin, extent] of [
  [[7], [2], [3]],
  [
    [4, 5],
    [1, 0],
    [2, 5],
  ],
  [
    [4, 5],
    [0, 2],
    [4, 3],
  ],
  [
    [4, 5, 6],
    [1, 0, 2],
    [2, 5, 3],
  ],
  [
    [4, 5, 6],
    [0, 1, 0],
    [4, 3, 6],
  ],
  [
    [3, 4, 5, 6],
    [1, 0, 2, 0],
    [2, 4, 3, 6],
  ],
  [
    [3, 4, 5, 6],
    [0, 1, 0, 3],
    [3, 2, 5, 2],
  ],
  [
    [2, 3, 2, 3, 4],
    [1, 1, 0, 0, 1],
    [1, 2, 2, 2, 3],
  ],
  [
    [4, 5],
    [0, 0],
    [4, 5],
  ],
  [
    [4, 5],
    [1, 1],
    [0, 2],
  ],
  [
    [300, 70],
    [10, 3],
    [200, 66],
  ],
] as const) {
  add(`slice ${begin} ${extent}`, [floats(shape)], (x: tf.Tensor) => tf.slice(x, [...begin], [...extent]));
}
add('pad', [floats([2, 3])], (x: tf.Tensor) =>
  tf.pad(
    x,
    [
      [1, 2],
      [0, 3],
    ],
    5,
  ),
);
add('tile', [floats([2, 3])], (x: tf.Tensor) => tf.tile(x, [2, 3]));
add('broadcastTo', [floats([3, 1])], (x: tf.Tensor) => tf.broadcastTo(x, [2, 3, 4]));

// Rows by index.
for (const [shape, indices, axis] of [
  [[9, 4], [0, 8, 3, 3, 3, 0], 0],
  [[9, 100], [5, 5, 1], 0],
  [[9, 4], [], 0],
  [[9], [8, 0, 8], 0],
  [[3, 5, 2], [4, 0, 4], 1],
  [[3, 2, 5], [4, 0, 4], 2],
] as const) {
  add(`gather ${axis}`, [floats(shape), given(indices, 'int32')], (x: tf.Tensor, i: tf.Tensor1D) =>
    tf.gather(x, i, axis),
  );
}
add('gather by a matrix of indices', [floats([9, 4]), integers([2, 3], 9)], (x: tf.Tensor, i: tf.Tensor2D) =>
  tf.gather(x, i),
);
add('gather of int32', [integers([9, 4], 99), integers([5], 9)], (x: tf.Tensor, i: tf.Tensor1D) => tf.gather(x, i), {
  differentiable: false,
});
add('gather, batchDims 1', [floats([3, 4, 2]), integers([3, 5], 4)], (x: tf.Tensor, i: tf.Tensor2D) =>
  tf.gather(x, i, 1, 1),
);
add(
  'gather, batchDims 1, later axis',
  [floats([3, 2, 4]), integers([3, 5], 4)],
  (x: tf.Tensor, i: tf.Tensor2D) => tf.gather(x, i, 2, 1),
  { differentiable: false },
);
for (const [shape, segments] of [
  [
    [6, 4],
    [0, 2, 2, 0, 2, 4],
  ],
  [[6], [5, 5, 5, 0, 0, 1]],
  [
    [3, 2, 4],
    [1, 1, 0],
  ],
  [[0, 4], []],
] as const) {
  add('unsortedSegmentSum', [floats(shape), given(segments, 'int32')], (x: tf.Tensor, ids: tf.Tensor1D) =>
    tf.unsortedSegmentSum(x, ids, 6),
  );
}
for (const dtype of ['float32', 'int32', 'bool'] as const) {
  add(`oneHot ${dtype}`, [integers([7], 5)], (x: tf.Tensor1D) => tf.oneHot(x, 5, 1, 0, dtype), {
    differentiable: false,
  });
}
add('oneHot with values', [given([0, 4, 5, -1], 'int32')], (x: tf.Tensor1D) => tf.oneHot(x, 5, 2.5, -0.5, 'float32'), {
  differentiable: false,
});
add('range', [], () => tf.range(0, 7, 1, 'int32'), { differentiable: false });
add('fill', [], () => tf.fill([2, 3], 1.5), { differentiable: false });

// What some backends do in one kernel (own-kernel.ts), at widths that are no multiple of four lanes as well.
for (const shape of [
  [5, 64],
  [33, 7],
  [1, 1],
  [0, 8],
]) {
  add('RMSNorm', [floats(shape)], (x: tf.Tensor) => normalise(x, 1e-5));
  add('SwiGLU', [floats(shape, -9, 9), floats(shape)], (g: tf.Tensor, u: tf.Tensor) => swiglu(g, u));
}
add(
  'SwiGLU far out',
  [given([-100, -88, 88, 100]), given([1, 1, 1, 1])],
  (g: tf.Tensor, u: tf.Tensor) => swiglu(g, u),
  {
    differentiable: false,
  },
);
for (const [shape, table, headWidth] of [
  [[2, 3, 24], [3, 24], 8],
  [[2, 3, 24], [2, 3, 24], 4],
  [[5, 3, 18], [3, 18], 6],
  [[0, 3, 8], [3, 8], 8],
] as const) {
  const tables = [integers(table, 2), integers(table, 2)].map(({ shape, values }) => ({
    shape,
    values: values.map((x) => x - 0.25),
    dtype: 'float32' as const,
  }));
  // Made inside, as they have no gradient.
  add('rotary positions', [floats(shape)], (x: tf.Tensor) => {
    const [cos, sin] = tables.map(({ values }) => tf.tensor([...values], [...table])) as [tf.Tensor, tf.Tensor];
    return rotate(x, cos, sin, headWidth);
  });
}
const causal = (T: number) =>
  tf.tensor2d(
    Float32Array.from({ length: T * T }, (_, i) => (i % T <= Math.floor(i / T) ? 0 : HIDDEN)),
    [T, T],
  );
for (const [B, T, heads, kvHeads, headWidth] of [
  [2, 5, 4, 2, 4],
  [3, 1, 2, 2, 8],
  [1, 40, 2, 1, 6],
  [2, 67, 3, 3, 16],
] as const) {
  const sizes = { heads, kvHeads, headWidth };
  const width = (heads + 2 * kvHeads) * headWidth;
  add(`causal attention ${heads}/${kvHeads}`, [floats([B, T, width])], (x: tf.Tensor) =>
    selfAttention(x, causal(T), sizes),
  );
  add(`attention under any bias ${heads}/${kvHeads}`, [floats([B, T, width])], (x: tf.Tensor) => {
    const bias = Float32Array.from({ length: T * T }, (_, i) =>
      (7 * i) % 3 === 0 && i % T > 0 ? HIDDEN : Math.sin(i),
    );
    return selfAttention(x, tf.tensor2d(bias, [T, T]), sizes);
  });
}
for (const [R, T, C, heads, kvHeads, headWidth] of [
  [3, 1, 0, 4, 2, 4],
  [3, 2, 5, 4, 2, 4],
  [2, 3, 9, 3, 3, 6],
  [5, 1, 37, 4, 1, 16],
] as const) {
  const sizes = { heads, kvHeads, headWidth };
  const cache = [R * kvHeads, C, headWidth];
  const part = { differentiable: false };
  // A token sees itself, and every second column before it.
  const bias = () =>
    tf.tensor4d(
      Float32Array.from({ length: R * T * (C + T) }, (_, i) => {
        const [column, token] = [i % (C + T), C + (Math.floor(i / (C + T)) % T)];
        return column === token || (column < token && column % 2 === 0) ? 0 : HIDDEN;
      }),
      [R, 1, T, C + T],
    );
  add(
    `attention over a cache ${heads}/${kvHeads}`,
    [floats([R, T, (heads + 2 * kvHeads) * headWidth]), floats(cache), floats(cache)],
    (x: tf.Tensor, keys: tf.Tensor3D, values: tf.Tensor3D) => {
      const out = cachedAttention(x, C === 0 ? undefined : { keys, values }, bias(), sizes);
      return tf.concat([out.context, out.keys, out.values].map((t) => tf.reshape(t, [-1])));
    },
    part,
  );
}
for (const [N, V, states] of [
  [6, 9, 0],
  [6, 9, 2],
  [33, 490, 5],
  [1, 2, 0],
  [3, 4, 1],
] as const) {
  for (const entropy of [false, true]) {
    // Each row's target is allowed.
    const rows = Array.from({ length: states * V }, (_, i) => (i % V !== 0 && i % 3 === 0 ? FORBIDDEN : 0));
    add(
      `logprobs under ${states === 0 ? 'no grammar' : 'a grammar'}${entropy ? ', with entropy' : ''}`,
      [floats([N, V], -9, 9)],
      (z: tf.Tensor2D) => {
        const targets = tf.tensor1d(
          Array.from({ length: N }, (_, n) => (n % 2) * Math.min(1, V - 1)),
          'int32',
        );
        const masks =
          states === 0
            ? undefined
            : {
                rows: tf.tensor2d(rows, [states, V]),
                index: tf.tensor1d(
                  Array.from({ length: N }, (_, n) => n % states),
                  'int32',
                ),
              };
        const out = scoredLogprobs({ logits: z, targets, masks, temperature: 0.8, entropy });
        return out.entropy === undefined ? out.logprobs : tf.stack([out.logprobs, out.entropy]);
      },
      { tolerance: 2e-5 },
    );
  }
}
for (const shape of [[7], [3, 5], [33, 129]]) {
  const options = { learningRate: 0.01, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weightDecay: 0.1 };
  add(
    'AdamW',
    [floats(shape), floats(shape), floats(shape), floats(shape, 0, 2)],
    (w: tf.Tensor, g: tf.Tensor, m: tf.Tensor, v: tf.Tensor) => {
      const next = adamw({ w }, { w: g }, { m: { w: m }, v: { w: v }, updates: { w: 2 } }, options);
      return tf.stack([next.weights, next.moments.m, next.moments.v].map(({ w }) => w as tf.Tensor));
    },
    { differentiable: false },
  );
}

export const CASES: readonly OpCase[] = list;
