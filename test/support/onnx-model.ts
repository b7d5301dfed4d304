/**
 * Small ONNX models, written byte by byte: fields and numbers are those of onnx.proto3
 * (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3), their encoding that of protocol buffers
 * (https://protobuf.dev/programming-guides/encoding).
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const varint = (n: number): number[] => (n < 128 ? [n] : [(n & 127) | 128, ...varint(Math.floor(n / 128))]);
const number = (field: number, value: number): Uint8Array => Uint8Array.from([...varint(field * 8), ...varint(value)]);
const bytes = (field: number, ...parts: readonly (Uint8Array | string)[]): Uint8Array => {
  const body = Buffer.concat(parts.map((p) => (typeof p === 'string' ? Buffer.from(p) : p)));
  return Buffer.concat([Uint8Array.from([...varint(field * 8 + 2), ...varint(body.length)]), body]);
};

const FLOAT = 1;
/** GraphProto.initializer: a TensorProto with dims, data_type, raw_data and name. */
const tensor = (name: string, dims: readonly number[], values: readonly number[]): Uint8Array =>
  bytes(
    5,
    ...dims.map((d) => number(1, d)),
    number(2, FLOAT),
    bytes(9, new Uint8Array(Float32Array.from(values).buffer)),
    bytes(8, name),
  );
/** GraphProto.node: inputs, outputs, operator. */
const node = (operator: string, inputs: readonly string[], output: string): Uint8Array =>
  bytes(1, ...inputs.map((i) => bytes(1, i)), bytes(2, output), bytes(4, operator));
/** GraphProto.input (11) and output (12): a tensor of any number of rows. */
const value = (field: number, name: string, width: number): Uint8Array =>
  bytes(
    field,
    bytes(1, name),
    bytes(2, bytes(1, number(1, FLOAT), bytes(2, bytes(1, bytes(2, 'rows')), bytes(1, number(1, width))))),
  );

export interface DenseModel {
  /** One row of weights per input. */
  readonly weights: readonly (readonly number[])[];
  readonly bias: readonly number[];
  /** `Sigmoid` for a model of probabilities; `Log` gives NaN below zero. */
  readonly activation: 'Sigmoid' | 'Log';
}

/** `answer = activation(x * weights + bias)`. */
export function denseModel({ weights, bias, activation }: DenseModel): Uint8Array {
  const graph = bytes(
    7,
    node('MatMul', ['x', 'weights'], 'weighted'),
    node('Add', ['weighted', 'bias'], 'sum'),
    node(activation, ['sum'], 'answer'),
    bytes(2, 'dense'),
    tensor('weights', [weights.length, bias.length], weights.flat()),
    tensor('bias', [bias.length], bias),
    value(11, 'x', weights.length),
    value(12, 'answer', bias.length),
  );
  // ModelProto: ir_version 8, graph, opset_import with version 17.
  return Buffer.concat([number(1, 8), graph, bytes(8, number(2, 17))]);
}

/** Writes `model.onnx` and a manifest that fits it; `change` alters the manifest. */
export function writeModel(
  folder: string,
  model: DenseModel,
  change: (manifest: Manifest) => unknown = (m) => m,
): void {
  const onnx = denseModel(model);
  const manifest: Manifest = {
    name: 'preemption',
    version: 'v1',
    sha256: createHash('sha256').update(onnx).digest('hex'),
    opset: 17,
    input: { name: 'x', width: model.weights.length, features: model.weights.map((_, i) => `feature${i}`) },
    output: { name: 'answer', width: model.bias.length, horizonsS: model.bias.map((_, i) => 3600 * (i + 1)) },
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'model.onnx'), onnx);
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(change(manifest)));
}

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly sha256: string;
  readonly opset: number;
  readonly input: { readonly name: string; readonly width: number; readonly features: readonly string[] };
  readonly output: { readonly name: string; readonly width: number; readonly horizonsS: readonly number[] };
}
