import type { StageSpec } from './job.ts';

/** `s3://bucket/folder`: place of a job's files on AWS, instead of a folder of this machine. */
export const isS3Uri = (text: string): boolean => /^s3:/i.test(text);

export interface S3Uri {
  readonly bucket: string;
  /** Without a slash at either end; empty: the whole bucket. */
  readonly key: string;
}

/** Bucket names: S3 User Guide, "General purpose bucket naming rules". Null if the text is not such a URI. */
export function parseS3Uri(text: string): S3Uri | null {
  const [, bucket, key] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^]*))?$/.exec(text) ?? [];
  if (bucket === undefined) return null;
  const plain = (key ?? '').replace(/\/+$/, '');
  return plain.startsWith('/') || plain.includes('//') || plain.split('/').includes('..')
    ? null
    : { bucket, key: plain };
}

export const s3Uri = ({ bucket, key }: S3Uri): string => `s3://${bucket}${key === '' ? '' : `/${key}`}`;

/** The working directory of a job that names none in S3: a folder of its own in the deployment's bucket. */
export const jobFolder = (bucket: string, job: string): string =>
  `s3://${bucket}/${WORK_PREFIX}${encodeURIComponent(job)}`;
export const WORK_PREFIX = 'work/';

/** Places that local mode cannot reach, each as `stages.NAME.KEY`. */
export const s3Places = (stages: readonly StageSpec[]): readonly string[] =>
  stages.flatMap(({ name, workdir, inputs, outputs }) =>
    Object.entries({ workdir: [workdir], inputs, outputs })
      .filter(([, texts]) => texts.some(isS3Uri))
      .map(([key]) => `stages.${name}.${key}`),
  );
