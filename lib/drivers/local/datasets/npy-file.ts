import { closeSync, openSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { writeAll } from '../fleet/files.ts';

/**
 * A column of numbers for NumPy, written as a stream: the format version 1.0 of
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Chosen before Parquet and Arrow because it
 * streams, is read by mapping the file into memory, and needs no library on either side but NumPy itself.
 */
export const NPY_TYPES = {
  float64: { descr: '<f8', bytes: 8 },
  float32: { descr: '<f4', bytes: 4 },
  int32: { descr: '<i4', bytes: 4 },
  uint8: { descr: '|u1', bytes: 1 },
} as const;
export type NpyType = keyof typeof NPY_TYPES;

/** Room for the header; a multiple of 64, as the format asks. */
const HEADER_BYTES = 128;
const BUFFER_BYTES = 1 << 20;

/** Lifecycle: `push` rows, then `close`, which writes the header and with it the number of rows. Memory: 1 MiB. */
export class NpyWriter {
  readonly #file: number;
  readonly #type: NpyType;
  readonly #width: number;
  readonly #buffer: DataView<ArrayBuffer>;
  readonly #hash = createHash('sha256');
  #filled = 0;
  #numbers = 0;

  /** @param width numbers in a row; 0 for a column of single ones. */
  constructor(path: string, type: NpyType, width = 0) {
    this.#type = type;
    this.#width = width;
    this.#buffer = new DataView(new ArrayBuffer(BUFFER_BYTES));
    this.#file = openSync(path, 'w');
    writeAll(this.#file, Buffer.alloc(HEADER_BYTES, 0x20));
  }

  push(value: number): void {
    if (this.#filled + 8 > BUFFER_BYTES) this.#flush();
    const at = this.#filled;
    switch (this.#type) {
      case 'float64':
        this.#buffer.setFloat64(at, value, true);
        break;
      case 'float32':
        this.#buffer.setFloat32(at, value, true);
        break;
      case 'int32':
        this.#buffer.setInt32(at, value, true);
        break;
      case 'uint8':
        this.#buffer.setUint8(at, value);
        break;
    }
    this.#filled += NPY_TYPES[this.#type].bytes;
    this.#numbers++;
  }

  pushAll(values: Float32Array): void {
    for (const value of values) this.push(value);
  }

  /** Finishes the file; the SHA-256 of its numbers, without the header. */
  close(): string {
    this.#flush();
    const shape = this.#width === 0 ? `(${this.#numbers},)` : `(${this.#numbers / this.#width}, ${this.#width})`;
    const text = `{'descr': '${NPY_TYPES[this.#type].descr}', 'fortran_order': False, 'shape': ${shape}, }`;
    const header = Buffer.alloc(HEADER_BYTES, 0x20);
    header.write('\x93NUMPY\x01\x00', 'latin1');
    header.writeUInt16LE(HEADER_BYTES - 10, 8);
    header.write(text, 10, 'latin1');
    header.write('\n', HEADER_BYTES - 1, 'latin1');
    writeAll(this.#file, header, 0);
    closeSync(this.#file);
    return this.#hash.digest('hex');
  }

  #flush(): void {
    const bytes = new Uint8Array(this.#buffer.buffer, 0, this.#filled);
    this.#hash.update(bytes);
    writeAll(this.#file, bytes);
    this.#filled = 0;
  }
}
