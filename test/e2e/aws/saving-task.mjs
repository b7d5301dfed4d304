/**
 * A program as a user may write it: counts steps of a second, saves after every few, and when it is asked to. It saves
 * to the folder in S3 where it is given one, and marks each save; else to its folder on disk.
 *
 *   node saving-task.mjs STEPS
 */
import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GetObjectCommand, NoSuchKey, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';

const SAVE_EVERY = 3;
const { EBB_CHECKPOINT_URI: folder, EBB_CHECKPOINT_MARK: mark, EBB_CHECKPOINT_DIR: disk = '.' } = process.env;
const steps = Number(process.argv[2]);

/** `s3://bucket/key` */
const at = (uri) => ({ Bucket: new URL(uri).hostname, Key: new URL(uri).pathname.slice(1) });
const s3 = folder === undefined ? null : new S3Client({ forcePathStyle: true });

async function saved() {
  if (s3 === null) return existsSync(join(disk, 'step')) ? Number(readFileSync(join(disk, 'step'), 'utf8')) : 0;
  try {
    const { Body } = await s3.send(new GetObjectCommand(at(`${folder}step`)));
    return Number(await Body.transformToString());
  } catch (error) {
    if (error instanceof NoSuchKey) return 0;
    throw error;
  }
}

async function save() {
  if (s3 === null) {
    writeFileSync(join(disk, 'step.new'), String(step));
    renameSync(join(disk, 'step.new'), join(disk, 'step'));
    return;
  }
  await s3.send(new PutObjectCommand({ ...at(`${folder}step`), Body: String(step) }));
  await s3.send(new PutObjectCommand({ ...at(mark), Body: '' }));
}

let step = await saved();
console.log(`goes on from step ${step}`);
let isAsked = false;
const asked = once(process, 'SIGUSR1').then(() => {
  isAsked = true;
});
while (step < steps) {
  await Promise.race([sleep(1000), asked]);
  if (isAsked) break;
  step += 1;
  console.log(`step ${step}`);
  if (step % SAVE_EVERY === 0 && step < steps) await save();
}
if (step < steps) {
  await save();
  console.log(`asked to stop, saved step ${step}`);
  process.exit(75);
}
console.log('finished');
