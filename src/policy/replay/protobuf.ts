/** @module The few protobuf messages that a SavedModel is made of (tensorflow/core/framework/*.proto, core/protobuf/{meta_graph,saved_model}.proto), encoded. */

const VARINT = 0;
const BYTES = 2;
const FIXED32 = 5;

function varint(value: number): Buffer {
  const out: number[] = [];
  let n = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(n & 127n);
    n >>= 7n;
    out.push(n > 0n ? low | 128 : low);
  } while (n > 0n);
  return Buffer.from(out);
}

function field(number: number, wire: number, body: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + wire), body]);
}

function bytes(number: number, body: Buffer): Buffer {
  return field(number, BYTES, Buffer.concat([varint(body.length), body]));
}

function text(number: number, value: string): Buffer {
  return bytes(number, Buffer.from(value));
}

function int(number: number, value: number): Buffer {
  return field(number, VARINT, varint(value));
}

function shapeProto(shape: readonly number[]): Buffer {
  return Buffer.concat(shape.map((size) => bytes(2, int(1, size))));
}

/** AttrValue, one function for each of its kinds. */
export const attribute = {
  type: (dtype: number) => int(6, dtype),
  int: (value: number) => int(3, value),
  ints: (values: readonly number[]) => bytes(1, Buffer.concat(values.map((value) => int(3, value)))),
  bool: (value: boolean) => int(5, value ? 1 : 0),
  string: (value: string) => text(2, value),
  float: (value: number) => {
    const body = Buffer.alloc(4);
    body.writeFloatLE(value);
    return field(4, FIXED32, body);
  },
  /** −1 stands for any size. */
  shape: (value: readonly number[]) => bytes(7, shapeProto(value)),
  /** Any shape of any rank. */
  anyShape: () => bytes(7, int(3, 1)),
  /** A constant; `content` is row-major, little-endian. */
  tensor: (dtype: number, shape: readonly number[], content: Buffer) =>
    bytes(8, Buffer.concat([int(1, dtype), bytes(2, shapeProto(shape)), bytes(4, content)])),
};

/** `inputs` are `node:output`, or `^node` for what must have run before. */
export function nodeDef(
  name: string,
  op: string,
  inputs: readonly string[],
  attributes: Readonly<Record<string, Buffer>>,
): Buffer {
  return Buffer.concat([
    text(1, name),
    text(2, op),
    ...inputs.map((input) => text(3, input)),
    ...Object.entries(attributes).map(([key, value]) => bytes(5, Buffer.concat([text(1, key), bytes(2, value)]))),
  ]);
}

/** The version that TensorFlow 2.18 writes; later ones read it. */
const PRODUCER = 1882;

/** A SavedModel of one graph, under the tag `serve`. */
export function savedModel(nodes: readonly Buffer[]): Buffer {
  const graph = Buffer.concat([...nodes.map((node) => bytes(1, node)), bytes(4, int(1, PRODUCER))]);
  return Buffer.concat([int(1, 1), bytes(2, Buffer.concat([bytes(1, text(4, 'serve')), bytes(2, graph)]))]);
}
