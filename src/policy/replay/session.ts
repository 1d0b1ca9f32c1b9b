/**
 * @module A TensorFlow session that holds named variables, and functions that were recorded once and are replayed as one call each.
 *
 * All functions share one graph, as variables cannot be shared between sessions: a new function means a new session, into which the
 * variables are carried over.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tf from '@tensorflow/tfjs';
import { IsogymError } from '../../records/errors.ts';
import type { NodeBackend } from '../backends/node-backend.ts';
import type { NamedTensors } from '../model.ts';
import { attribute, savedModel } from './protobuf.ts';
import { FLOAT, type Recorded, type RecordedFunction, recordFunction, type Scope } from './recorded-function.ts';
import { Graph } from './recorder.ts';

/** Whether the backend that is set can replay: `native` and `cuda` can. */
export function canReplay(): boolean {
  return tf.getBackend() === 'tensorflow';
}

export class Session {
  readonly #backend = tf.backend() as NodeBackend;
  readonly #graph = new Graph();
  readonly #functions = new Map<string, RecordedFunction>();
  readonly #shapes = new Map<string, readonly number[]>();
  /** Values that wait for the session to be loaded. */
  #waiting: Record<string, tf.Tensor> = {};
  #session: number | undefined;
  /** Variables of the session that is loaded now. */
  readonly #loaded = new Set<string>();

  /** How many functions were recorded. */
  get recordings(): number {
    return this.#functions.size;
  }

  /** Nodes of all functions' graphs, before TensorFlow prunes them. */
  get operations(): number {
    return [...this.#functions.values()].reduce((sum, { operations }) => sum + operations, 0);
  }

  has(name: string): boolean {
    return this.#functions.has(name);
  }

  hasVariable(name: string): boolean {
    return this.#shapes.has(name);
  }

  /**
   * New variables, all float32. The tensors stay their owner's.
   * @param anyShape whether later values may have other shapes; functions that read them must then be right for all of those
   */
  declare(values: NamedTensors, { anyShape = false }: { readonly anyShape?: boolean } = {}): void {
    for (const [name, value] of Object.entries(values)) {
      if (this.#shapes.has(name)) throw new IsogymError('INTERNAL', `variable ${name} is declared twice`);
      this.#shapes.set(name, value.shape);
      const shape = anyShape ? attribute.anyShape() : attribute.shape(value.shape);
      const handle = { dtype: attribute.type(FLOAT), shape, shared_name: attribute.string(name) };
      this.#graph.add(`handle/${name}`, 'VarHandleOp', [], handle);
      this.#graph.add(`get/${name}`, 'ReadVariableOp', [`handle/${name}`], { dtype: attribute.type(FLOAT) });
      const placeholder = { dtype: attribute.type(FLOAT), shape };
      this.#graph.add(`new/${name}`, 'Placeholder', [], placeholder);
      // A copy: what is fed may lie in the memory of a typed array, which a variable would let go of in a thread of TensorFlow's, and
      // Node must hear of that in its own.
      this.#graph.add(`own/${name}`, 'DeepCopy', [`new/${name}`], { T: attribute.type(FLOAT) });
      const assigned = { dtype: attribute.type(FLOAT) };
      this.#graph.add(`set/${name}`, 'AssignVariableOp', [`handle/${name}`, `own/${name}`], assigned);
      const done = { dtype: attribute.type(FLOAT), value: attribute.tensor(FLOAT, [], Buffer.alloc(4)) };
      this.#graph.add(`did/${name}`, 'Const', [`^set/${name}`], done);
    }
    this.#unload();
    this.#keep(values);
  }

  /**
   * Runs `step` once eagerly, on these feeds and with variables of zeros, and keeps what it asked of TensorFlow.
   * @param feeds of the shapes and types of every later call; only values may differ. They stay their owner's.
   * @param anyRows whether later feeds may have another first dimension; `step` must then be right for all of those
   * @throws NOT_RECORDABLE where it reads a tensor back
   */
  define(
    name: string,
    feeds: NamedTensors,
    step: (scope: Scope) => Recorded,
    { anyRows = false }: { readonly anyRows?: boolean } = {},
  ): void {
    const before = this.#graph.nodes.length;
    const constants = new Map(this.#graph.constants);
    try {
      const prefix = `f${this.#functions.size}`;
      const shapeOf = (variable: string) => this.#shapeOf(variable);
      const made = recordFunction({ graph: this.#graph, prefix, feeds, step, shapeOf, anyRows });
      this.#functions.set(name, made);
    } catch (error) {
      this.#graph.nodes.length = before;
      this.#graph.constants.clear();
      for (const [key, constant] of constants) this.#graph.constants.set(key, constant);
      throw error;
    }
    this.#unload();
  }

  /**
   * One call. The outputs are new tensors, the caller's.
   * @param ending which of the function's endings; none changes nothing but what `overwrite` does
   * @param outputs which of the function's outputs, at least one; nothing is computed for others alone
   */
  run(name: string, feeds: NamedTensors, ending = '', outputs?: readonly string[]): Record<string, tf.Tensor> {
    const known = this.#functions.get(name);
    if (known === undefined) throw new IsogymError('INTERNAL', `function ${name} was not recorded`);
    const wanted = outputs ?? known.outputs;
    const inputs = known.feeds.map((feed) => feeds[feed] as tf.Tensor);
    const made = this.#call(
      inputs,
      known.feeds.map((feed) => `${known.prefix}/feed/${feed}`),
      wanted.map((output) => `${known.prefix}/out/${output}/${ending}`),
    );
    return Object.fromEntries(wanted.map((output, i) => [output, made[i] as tf.Tensor]));
  }

  /** The variables' values as new tensors, the caller's. */
  read<Name extends string>(names: readonly Name[]): Record<Name, tf.Tensor> {
    const made = this.#call(
      [],
      [],
      names.map((name) => `get/${name}`),
    );
    return Object.fromEntries(names.map((name, i) => [name, made[i]])) as Record<Name, tf.Tensor>;
  }

  write(values: NamedTensors): void {
    for (const [name, value] of Object.entries(values)) this.#shapes.set(name, value.shape);
    if (this.#session !== undefined) this.#set(values);
    else this.#keep(values);
  }

  dispose(): void {
    if (this.#session !== undefined) this.#backend.binding.deleteSavedModel(this.#session);
    this.#session = undefined;
    tf.dispose(Object.values(this.#waiting));
    this.#waiting = {};
  }

  #shapeOf(variable: string): readonly number[] {
    const shape = this.#shapes.get(variable);
    if (shape === undefined) throw new IsogymError('INTERNAL', `variable ${variable} was not declared`);
    return shape;
  }

  /** Until the session is loaded. */
  #keep(values: NamedTensors): void {
    for (const [name, value] of Object.entries(values)) {
      this.#waiting[name]?.dispose();
      // Whatever tidy this happens in.
      this.#waiting[name] = tf.keep(value.clone());
    }
  }

  #set(values: NamedTensors): void {
    const names = Object.keys(values);
    if (names.length === 0) return;
    const did = this.#call(
      Object.values(values),
      names.map((name) => `new/${name}`),
      names.map((name) => `did/${name}`),
    );
    tf.dispose(did);
  }

  #call(inputs: readonly tf.Tensor[], from: readonly string[], to: readonly string[]): tf.Tensor[] {
    const session = this.#load();
    const ids = this.#backend.getInputTensorIds(inputs);
    const outputs = to.map((node) => `${node}:0`).join(',');
    const made = this.#backend.binding.runSavedModel(session, ids, from.join(','), outputs);
    return made.map((handle) => this.#backend.createOutputTensor(handle));
  }

  /** Ends the session, if there is one, and keeps the variables. */
  #unload(): void {
    if (this.#session === undefined) return;
    const names = [...this.#shapes.keys()].filter((name) => this.#loaded.has(name));
    const values = names.length === 0 ? {} : this.read(names);
    // Whatever tidy this happens in.
    for (const value of Object.values(values)) tf.keep(value);
    this.#backend.binding.deleteSavedModel(this.#session);
    this.#session = undefined;
    this.#waiting = { ...values, ...this.#waiting };
  }

  #load(): number {
    if (this.#session !== undefined) return this.#session;
    const folder = mkdtempSync(join(tmpdir(), 'isogym-graph-'));
    try {
      writeFileSync(join(folder, 'saved_model.pb'), savedModel(this.#graph.nodes));
      this.#session = this.#backend.binding.loadSavedModel(folder, 'serve');
    } finally {
      rmSync(folder, { recursive: true });
    }
    this.#loaded.clear();
    for (const name of this.#shapes.keys()) this.#loaded.add(name);
    const values = this.#waiting;
    this.#waiting = {};
    this.#set(values);
    tf.dispose(Object.values(values));
    return this.#session;
  }
}
