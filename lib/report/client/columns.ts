import type { JobNumber, JobsPayload, JobText, NumberColumn, TextColumn } from '../payload.ts';

/** Base64 text of a blob by its number. */
export type Blobs = (blob: number) => string;

/** Texts by row: `dictionary[index[row]]`. */
export interface Texts {
  readonly dictionary: readonly string[];
  readonly index: Uint32Array;
}

/** Decoded jobs of one run. NaN for events that have not happened. */
export type Jobs = Readonly<Record<JobText, Texts>> &
  Readonly<Record<JobNumber, Float64Array | Float32Array>> & { readonly rows: number };

export async function decodeJobs(payload: JobsPayload, blobs: Blobs): Promise<Jobs> {
  const { rows } = payload;
  const texts = async (name: JobText): Promise<Texts> => decodeTexts(payload.texts[name], rows, blobs);
  const numbers = async (name: JobNumber): Promise<Float64Array | Float32Array> =>
    decodeNumbers(payload.numbers[name], blobs);
  return {
    rows,
    key: await texts('key'),
    name: await texts('name'),
    owner: await texts('owner'),
    class: await texts('class'),
    state: await texts('state'),
    tasks: await numbers('tasks'),
    submittedMs: await numbers('submittedMs'),
    startedMs: await numbers('startedMs'),
    finishedMs: await numbers('finishedMs'),
    deadlineMs: await numbers('deadlineMs'),
    workUsd: await numbers('workUsd'),
    wastedUsd: await numbers('wastedUsd'),
    speculativeUsd: await numbers('speculativeUsd'),
    movedUsd: await numbers('movedUsd'),
    idleUsd: await numbers('idleUsd'),
    onDemandUsd: await numbers('onDemandUsd'),
    interruptions: await numbers('interruptions'),
  };
}

export async function decodeNumbers({ blob, bytes }: NumberColumn, blobs: Blobs): Promise<Float64Array | Float32Array> {
  const buffer = joined(await inflated(blobs(blob)), bytes);
  return bytes === 8 ? new Float64Array(buffer) : new Float32Array(buffer);
}

async function decodeTexts({ dictionary, index }: TextColumn, rows: number, blobs: Blobs): Promise<Texts> {
  const words = JSON.parse(new TextDecoder().decode(await inflated(blobs(dictionary)))) as readonly string[];
  const places =
    index === null
      ? Uint32Array.from({ length: rows }, (_, i) => i)
      : new Uint32Array(joined(await inflated(blobs(index)), 4));
  return { dictionary: words, index: places };
}

async function inflated(base64: string): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Numbers from their byte planes: the inverse of columns.ts in lib/report. */
function joined(split: Uint8Array, width: number): ArrayBuffer {
  const n = split.length / width;
  const bytes = new Uint8Array(split.length);
  for (let plane = 0; plane < width; plane++)
    for (let i = 0; i < n; i++) bytes[i * width + plane] = split[plane * n + i] ?? 0;
  return bytes.buffer;
}
