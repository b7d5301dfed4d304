/**
 * Opens a model and asks it, in a process of its own: in jest, ONNX Runtime is given arrays of another realm, which it
 * refuses. `node test/support/ask-model.ts '<Question>'` prints an Asked.
 */
import { openModel } from '../../lib/models/model.ts';

export interface Question {
  /** Of the version. */
  readonly folder: string;
  readonly known: readonly string[];
  readonly batches: readonly (readonly number[])[];
}

export interface Asked {
  readonly kind: string;
  readonly what?: string;
  readonly version?: string;
  readonly horizonsS?: readonly number[];
  /** Per batch; the message where it was not taken. */
  readonly answers?: readonly ({ readonly values: readonly number[] } | { readonly row: number } | string)[];
  /** Whether ONNX Runtime was loaded. */
  readonly isLoaded: boolean;
}

async function asked({ folder, known, batches }: Question): Promise<Asked> {
  const opening = await openModel(folder, known);
  if (opening.kind !== 'open') return { ...opening, isLoaded: isLoaded() };
  const { model } = opening;
  const { version, output } = model.manifest;
  const answers: NonNullable<Asked['answers']>[number][] = [];
  for (const batch of batches) {
    try {
      const answer = await model.run(Float32Array.from(batch));
      answers.push(answer.kind === 'values' ? { values: [...answer.values] } : { row: answer.row });
    } catch (error) {
      answers.push((error as Error).message);
    }
  }
  await model.close();
  return { kind: 'open', version, horizonsS: output.horizonsS, answers, isLoaded: isLoaded() };
}

const isLoaded = (): boolean =>
  (process.report.getReport() as { sharedObjects: string[] }).sharedObjects.some((f) => f.includes('onnxruntime'));

process.stdout.write(JSON.stringify(await asked(JSON.parse(process.argv[2] ?? '') as Question)));
