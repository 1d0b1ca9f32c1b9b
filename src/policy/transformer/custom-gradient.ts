/** @module Two of tfjs's functions without their traps: a function of tensors with its gradient written by hand, and tidy for records. */
import * as tf from '@tensorflow/tfjs';

/**
 * What the forward pass gives. `gradient` must use no tensor but `dy` and the `saved` ones that it is handed: anything else that
 * the forward pass made is disposed before the backward pass.
 */
export interface Differentiable {
  readonly value: tf.Tensor;
  readonly saved: readonly tf.Tensor[];
  /** One gradient for each input, of its shape. */
  readonly gradient: (dy: tf.Tensor, saved: readonly tf.Tensor[]) => tf.Tensor[];
}

/** Applies `forward` to the inputs; the operations inside it are not differentiated, `gradient` stands for them. */
export function withGradient(
  inputs: readonly tf.Tensor[],
  forward: (inputs: readonly tf.Tensor[]) => Differentiable,
): tf.Tensor {
  return tf.customGrad((...args: (tf.Tensor | tf.GradSaveFunc)[]) => {
    const save = args.at(-1) as tf.GradSaveFunc;
    const { value, saved, gradient } = forward(args.slice(0, -1) as tf.Tensor[]);
    save([...saved]);
    return { value, gradFunc: (dy: tf.Tensor, kept: tf.Tensor[]) => gradient(dy, kept) };
  })(...inputs);
}

/** The tensor at `index`: for lists whose length the code beside it fixes. */
export function nth(tensors: readonly tf.Tensor[], index: number): tf.Tensor {
  const tensor = tensors[index];
  if (tensor === undefined) throw new RangeError(`expected tensor ${index}, found ${tensors.length} tensors`);
  return tensor;
}

/** tf.tidy for any plain record of tensors; its own type refuses readonly ones. */
export function tidy<T>(make: () => T): T {
  return tf.tidy(make as unknown as () => tf.TensorContainer) as T;
}
