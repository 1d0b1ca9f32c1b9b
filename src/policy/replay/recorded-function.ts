/** @module A function of feeds and variables as nodes of a session's graph: recorded while it runs once, on variables of zeros. */
import * as tf from '@tensorflow/tfjs';
import type { NamedTensors } from '../model.ts';
import { attribute } from './protobuf.ts';
import { type Endpoint, type Graph, Recorder } from './recorder.ts';

/** A change of variables, by a TensorFlow operation that takes their handles first. */
export interface Effect {
  readonly op: string;
  /** Names of variables. */
  readonly variables: readonly string[];
  /** Operands in order; where the operation wants a handle among them, `variables` come first. */
  readonly operands: readonly tf.Tensor[];
  readonly attributes: Readonly<Record<string, Buffer>>;
}

export interface Scope {
  readonly feeds: NamedTensors;
  /** The variable as it was when the call began. */
  read(variable: string): tf.Tensor;
  /**
   * `variable[at] ← rows`, at once, and gives the variable as it is after it. No copy is made: a tensor that was read from the variable,
   * in this call or before, may change as well.
   * @param at int32 [n], rows of the variable
   */
  overwrite(variable: string, at: tf.Tensor, rows: tf.Tensor): tf.Tensor;
}

/** What a function gives. */
export interface Recorded {
  readonly outputs: NamedTensors;
  /** What a call changes, after all reads. A function may end in several ways; a call says which. */
  readonly endings?: Readonly<Record<string, readonly Effect[]>>;
}

/** A function that was recorded: where in the graph it takes its feeds, and where it gives what. */
export interface RecordedFunction {
  readonly prefix: string;
  /** In the order of their placeholders. */
  readonly feeds: readonly string[];
  readonly outputs: readonly string[];
  /** Nodes of its graph. */
  readonly operations: number;
}

/** Element type of every variable. */
export const FLOAT = 1;

/** `variable ← value` */
export function assign(variable: string, value: tf.Tensor): Effect {
  return {
    op: 'AssignVariableOp',
    variables: [variable],
    operands: [value],
    attributes: { dtype: attribute.type(FLOAT) },
  };
}

export interface FunctionOptions {
  readonly graph: Graph;
  /** Of the names of its nodes. */
  readonly prefix: string;
  readonly feeds: NamedTensors;
  readonly step: (scope: Scope) => Recorded;
  /** Of a variable. */
  readonly shapeOf: (variable: string) => readonly number[];
  /** Whether later feeds may have another first dimension. */
  readonly anyRows: boolean;
}

/** Runs `step` once and adds what it asks of TensorFlow to the graph; where that throws, half of it may be there. @throws NOT_RECORDABLE */
export function recordFunction({ graph, prefix, feeds, step, shapeOf, anyRows }: FunctionOptions): RecordedFunction {
  const before = graph.nodes.length;
  const recorder = new Recorder(graph, prefix);
  return tf.tidy(() => {
    placeholders(recorder, feeds, anyRows);
    const reads = new Map<string, tf.Tensor>();
    const standIn = (variable: string, endpoint: Endpoint): tf.Tensor => {
      const tensor = recorder.standIn(shapeOf(variable), endpoint);
      reads.set(variable, tensor);
      return tensor;
    };
    const dtype = attribute.type(FLOAT);
    const scope: Scope = {
      feeds,
      read: (variable) =>
        reads.get(variable) ??
        standIn(variable, recorder.node('ReadVariableOp', [`handle/${variable}`], { dtype }, `read/${variable}`)),
      overwrite: (variable, at, rows) => {
        const inputs = [scope.read(variable), at, rows].map((tensor) => recorder.endpoint(tensor));
        return standIn(variable, recorder.node('InplaceUpdate', inputs, { T: dtype }));
      },
    };
    const { outputs, endings = {} } = recorder.record(() => step(scope));
    for (const [ending, effects] of Object.entries({ '': [], ...endings })) {
      const done = inOrder(recorder, effects, reads, ending);
      for (const [output, tensor] of Object.entries(outputs)) {
        const inputs = [recorder.endpoint(tensor), ...done];
        recorder.node('Identity', inputs, { T: recorder.typeOf(tensor) }, `out/${output}/${ending}`);
      }
    }
    return {
      prefix,
      feeds: Object.keys(feeds),
      outputs: Object.keys(outputs),
      operations: graph.nodes.length - before,
    };
  });
}

function placeholders(recorder: Recorder, feeds: NamedTensors, anyRows: boolean): void {
  for (const [feed, tensor] of Object.entries(feeds)) {
    const shape = anyRows ? [-1, ...tensor.shape.slice(1)] : tensor.shape;
    const attributes = { dtype: recorder.typeOf(tensor), shape: attribute.shape(shape) };
    recorder.bind(tensor, recorder.node('Placeholder', [], attributes, `feed/${feed}`));
  }
}

/** Each effect after every read of what it changes, and after the effect before it on the same variable. @returns control inputs that wait for all */
function inOrder(
  recorder: Recorder,
  effects: readonly Effect[],
  reads: ReadonlyMap<string, tf.Tensor>,
  ending: string,
): readonly string[] {
  const last = new Map<string, Endpoint>();
  return effects.map(({ op, variables, operands, attributes }, i) => {
    const after = variables.flatMap((variable) => {
      const before = last.get(variable);
      const read = reads.get(variable);
      return [before, read && recorder.endpoint(read)].flatMap((node) => (node === undefined ? [] : [`^${node}`]));
    });
    const handles = variables.map((variable) => `handle/${variable}`);
    const inputs = [...handles, ...operands.map((operand) => recorder.endpoint(operand)), ...new Set(after)];
    const node = recorder.node(op, inputs, attributes, `end/${ending}/${i}`);
    for (const variable of variables) last.set(variable, node);
    return `^${node}`;
  });
}
