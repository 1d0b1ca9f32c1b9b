/** @module Records what a function asks of TensorFlow, operation by operation, as the nodes of a graph. */
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../../records/errors.ts';
import type { AddonBinding, HandleId, NodeBackend, OpAttribute } from '../backends/node-backend.ts';
import { attribute, nodeDef } from './protobuf.ts';

/** `node`, or `node:output`. */
export type Endpoint = string;

/** Of a constant that is shared, at most [bytes]. */
const SMALL = 64;

/** The nodes of one graph, in an order in which each comes after its inputs. */
export class Graph {
  readonly nodes: Buffer[] = [];
  /** Small constants by what they are: a step repeats a few shapes and scalars hundreds of times. */
  readonly constants = new Map<string, Endpoint>();

  add(name: string, op: string, inputs: readonly string[], attributes: Readonly<Record<string, Buffer>>): Endpoint {
    this.nodes.push(nodeDef(name, op, inputs, attributes));
    return name;
  }
}

export class Recorder {
  readonly #graph: Graph;
  readonly #prefix: string;
  readonly #backend: NodeBackend;
  readonly #binding: AddonBinding;
  readonly #endpoints = new Map<HandleId, Endpoint>();
  /** Which operation made a tensor: for errors. */
  readonly #makers = new Map<HandleId, string>();
  readonly #tensors = new Map<HandleId, tf.TensorInfo>();
  #count = 0;

  constructor(graph: Graph, prefix: string) {
    this.#graph = graph;
    this.#prefix = prefix;
    this.#backend = tf.backend() as NodeBackend;
    this.#binding = this.#backend.binding;
  }

  /** Runs `step` with every operation recorded. @throws NOT_RECORDABLE where it reads a tensor back: what it then did would be the same at every replay. */
  record<T>(step: () => T): T {
    const backend = this.#backend;
    const { getInputTensorIds } = backend;
    backend.binding = this.#listening();
    backend.getInputTensorIds = (tensors) => {
      const ids = getInputTensorIds.call(backend, tensors);
      for (const [i, id] of ids.entries()) this.#tensors.set(id, tensors[i] as tf.TensorInfo);
      return ids;
    };
    try {
      return step();
    } finally {
      backend.binding = this.#binding;
      // An own property hid the prototype's.
      delete (backend as { getInputTensorIds?: unknown }).getInputTensorIds;
    }
  }

  node(op: string, inputs: readonly string[], attributes: Readonly<Record<string, Buffer>>, name?: string): Endpoint {
    return this.#graph.add(`${this.#prefix}/${name ?? `n${this.#count++}`}`, op, inputs, attributes);
  }

  /** From now on this tensor stands for that endpoint, and its values are no part of the recording. */
  bind(tensor: tf.Tensor, endpoint: Endpoint): void {
    const listening = this.#backend.binding;
    this.#backend.binding = this.#binding;
    try {
      // Uploaded now: it would otherwise be at its first use, as a constant.
      this.#endpoints.set(this.idOf(tensor), endpoint);
    } finally {
      this.#backend.binding = listening;
    }
  }

  /** Zeros that stand for an endpoint. */
  standIn(shape: readonly number[], endpoint: Endpoint): tf.Tensor {
    const tensor = tf.zeros([...shape]);
    this.bind(tensor, endpoint);
    return tensor;
  }

  /** Where a tensor of the recording comes from; one that was made before it becomes a constant. */
  endpoint(tensor: tf.TensorInfo): Endpoint {
    const id = this.idOf(tensor);
    this.#tensors.set(id, tensor);
    return this.#input(id);
  }

  typeOf({ dtype }: Pick<tf.TensorInfo, 'dtype'>): Buffer {
    return attribute.type(this.#backend.getDTypeInteger(dtype));
  }

  /** Also sends the tensor's values to TensorFlow, if they are not there yet. */
  idOf(tensor: tf.TensorInfo): HandleId {
    return this.#backend.getInputTensorIds([tensor])[0] as HandleId;
  }

  #listening(): AddonBinding {
    const real = this.#binding;
    const own: Partial<AddonBinding> = {
      createTensor: (shape, dtype, values) => {
        const id = real.createTensor(shape, dtype, values);
        this.#endpoints.set(id, this.#constant(dtype, shape, values));
        return id;
      },
      executeOp: (op, attributes, inputs, outputs) => {
        const made = real.executeOp(op, attributes, inputs, outputs);
        const name = this.#operation(op, attributes, inputs);
        for (const [i, { id }] of made.entries()) {
          this.#endpoints.set(id, i === 0 ? name : `${name}:${i}`);
          this.#makers.set(id, op);
        }
        return made;
      },
      tensorDataSync: (id) => {
        throw new IsogymError(
          'NOT_RECORDABLE',
          `expected a step that reads nothing back, found one that reads the result of ${this.#makers.get(id) ?? 'an input'}`,
          { hint: 'Return it as an output, or run eagerly: replay: false' },
        );
      },
      runSavedModel: () => {
        throw new IsogymError('NOT_RECORDABLE', 'expected a step of operations, found the replay of another one');
      },
    };
    // Not a proxy of `real` itself, whose properties are read-only: it would have to give them as they are.
    return new Proxy(Object.create(null) as AddonBinding, {
      get: (_, key) => {
        const value = own[key as keyof AddonBinding] ?? real[key as keyof AddonBinding];
        return typeof value === 'function' ? value.bind(real) : value;
      },
    });
  }

  #operation(op: string, attributes: readonly OpAttribute[], inputs: readonly HandleId[]): Endpoint {
    const endpoints = inputs.map((id) => this.#input(id));
    // tfjs knows no other product than the batched one; of two matrices it is slower than the plain one.
    if (op === 'BatchMatMulV2' && inputs.every((id) => this.#tensors.get(id)?.shape.length === 2)) {
      const named = Object.fromEntries(attributes.map((a) => [a.name, a.value]));
      return this.node('MatMul', endpoints, {
        T: attribute.type(named.T as number),
        transpose_a: attribute.bool(named.adj_x as boolean),
        transpose_b: attribute.bool(named.adj_y as boolean),
      });
    }
    const given = Object.fromEntries(attributes.map((a) => [a.name, this.#attribute(op, a)]));
    // The one kernel that leaves its types to be inferred, which a graph does not.
    const [first] = inputs;
    const tensor = op === 'ExpandDims' && first !== undefined ? this.#tensors.get(first) : undefined;
    if (tensor !== undefined) {
      given.T = this.typeOf(tensor);
      given.Tdim = attribute.type(this.#binding.TF_INT32);
    }
    return this.node(op, endpoints, given);
  }

  #input(id: HandleId): Endpoint {
    const known = this.#endpoints.get(id);
    if (known !== undefined) return known;
    const tensor = this.#tensors.get(id);
    if (tensor === undefined) throw new IsogymError('INTERNAL', `a recorded operation has an unknown input ${id}`);
    const dtype = this.#backend.getDTypeInteger(tensor.dtype);
    const made = this.#constant(dtype, tensor.shape, this.#binding.tensorDataSync(id));
    this.#endpoints.set(id, made);
    return made;
  }

  #constant(dtype: number, shape: readonly number[], values: ArrayBufferView): Endpoint {
    const content = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    const key = content.length > SMALL ? undefined : `${dtype} ${shape} ${content.toString('hex')}`;
    const known = key === undefined ? undefined : this.#graph.constants.get(key);
    if (known !== undefined) return known;
    const made = this.node('Const', [], {
      dtype: attribute.type(dtype),
      value: attribute.tensor(dtype, shape, Buffer.from(content)),
    });
    if (key !== undefined) this.#graph.constants.set(key, made);
    return made;
  }

  #attribute(op: string, { name, type, value }: OpAttribute): Buffer {
    const real = this.#binding;
    switch (type) {
      case real.TF_ATTR_TYPE:
        return attribute.type(value as number);
      case real.TF_ATTR_INT:
        return Array.isArray(value) ? attribute.ints(value as number[]) : attribute.int(value as number);
      case real.TF_ATTR_BOOL:
        return attribute.bool(value as boolean);
      case real.TF_ATTR_FLOAT:
        return attribute.float(value as number);
      case real.TF_ATTR_STRING:
        return attribute.string(value as string);
      case real.TF_ATTR_SHAPE:
        return attribute.shape(value as number[]);
      default:
        throw new IsogymError('NOT_RECORDABLE', `${op}: expected an attribute ${name} of a known type, found ${type}`);
    }
  }
}
