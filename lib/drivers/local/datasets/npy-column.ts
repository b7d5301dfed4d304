/**
 * NumPy's file format, version 1.0, little-endian, rows first:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
import { readFileSync } from 'node:fs';
import type { Numbers } from '../../../models/evaluation/dataset-rows.ts';

export interface Column {
  readonly shape: readonly number[];
  readonly values: Numbers;
}

const READERS: Readonly<Record<string, (bytes: ArrayBuffer) => Numbers>> = {
  '<f4': (bytes) => new Float32Array(bytes),
  '<f8': (bytes) => new Float64Array(bytes),
  '<i4': (bytes) => new Int32Array(bytes),
  '|u1': (bytes) => new Uint8Array(bytes),
};

export function npyColumn(path: string): Column {
  const bytes = readFileSync(path);
  const begin = 10 + bytes.readUInt16LE(8);
  const header = bytes.subarray(10, begin).toString('latin1');
  const [, descr = '', shape = ''] =
    /'descr': '([^']+)'.*'fortran_order': False.*'shape': \(([^)]*)\)/.exec(header) ?? [];
  const read = READERS[descr];
  if (bytes.subarray(0, 8).toString('latin1') !== '\x93NUMPY\x01\x00' || read === undefined) {
    throw new Error(`${path}: not a NumPy file of version 1.0 with ${Object.keys(READERS).join(', ')}`);
  }
  const body = bytes.buffer.slice(bytes.byteOffset + begin, bytes.byteOffset + bytes.length);
  return {
    shape: shape
      .split(',')
      .filter((part) => part.trim() !== '')
      .map(Number),
    values: read(body),
  };
}
