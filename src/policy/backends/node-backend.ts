/** @module What of tfjs-node's backend and of its addon is used beside the kernels; its own types hide most of it. */
import type { DataType, KernelBackend, Tensor, TensorInfo } from '@tensorflow/tfjs';

export interface OpAttribute {
  readonly name: string;
  readonly type: number;
  readonly value: unknown;
}

/** A tensor in the addon: a number that is never used again. */
export type HandleId = number;

export interface OutputHandle {
  readonly id: HandleId;
  readonly shape: number[];
  readonly dtype: number;
}

/** The C++ side. Types of attributes and elements are numbers that it names itself. */
export interface AddonBinding {
  readonly TF_Version: string;
  readonly TF_FLOAT: number;
  readonly TF_INT32: number;
  readonly TF_BOOL: number;
  readonly TF_ATTR_TYPE: number;
  readonly TF_ATTR_INT: number;
  readonly TF_ATTR_BOOL: number;
  readonly TF_ATTR_FLOAT: number;
  readonly TF_ATTR_STRING: number;
  readonly TF_ATTR_SHAPE: number;
  createTensor(shape: readonly number[], dtype: number, values: ArrayBufferView): HandleId;
  deleteTensor(id: HandleId): void;
  tensorDataSync(id: HandleId): ArrayBufferView;
  executeOp(
    op: string,
    attributes: readonly OpAttribute[],
    inputs: readonly HandleId[],
    outputs: number,
  ): OutputHandle[];
  loadSavedModel(folder: string, tags: string): number;
  deleteSavedModel(session: number): void;
  /** One call of a session; names are joined by commas, outputs named `node:index`. */
  runSavedModel(session: number, inputs: readonly HandleId[], inputNames: string, outputNames: string): OutputHandle[];
}

export interface NodeBackend extends KernelBackend {
  readonly isUsingGpuDevice: boolean;
  binding: AddonBinding;
  getInputTensorIds(tensors: readonly TensorInfo[]): HandleId[];
  getDTypeInteger(dtype: DataType): number;
  createOutputTensor(handle: OutputHandle): Tensor;
  executeSingleOutput(op: string, attributes: readonly OpAttribute[], inputs: readonly TensorInfo[]): TensorInfo;
}
