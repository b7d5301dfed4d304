import { readFile, writeFile } from 'node:fs/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Item } from '../../lib/drivers/aws/store/codec.ts';
import { HEAD, LOG } from '../../lib/drivers/aws/store/keys.ts';
import { ObjectsDouble } from '../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../doubles/dynamodb/table.ts';
import { answersOf, opened, type StoredWorld } from './stored-world.ts';

/** What a version of the store wrote, and what it answered from that. Bytes are base64. */
interface Recorded {
  readonly items: readonly Readonly<Record<string, Readonly<Record<string, unknown>>>>[];
  readonly objects: Readonly<Record<string, string>>;
  readonly answers: unknown;
}

const fileOf = (version: number): URL => new URL(`../fixtures/store/dynamodb-v${version}.json.gz`, import.meta.url);

export async function recorded(version: number): Promise<{ readonly world: StoredWorld; readonly answers: unknown }> {
  const { items, objects, answers } = JSON.parse(gunzipSync(await readFile(fileOf(version))).toString()) as Recorded;
  const bytesOf = (base64: unknown): Uint8Array => Buffer.from(String(base64), 'base64');
  const item = (plain: Recorded['items'][number]): Item =>
    mapped(plain, (value) => ('B' in value ? { B: bytesOf(value['B']) } : value) as unknown as Item[string]);
  return {
    world: { table: DynamoDouble.of(items.map(item)), objects: ObjectsDouble.of(mapped(objects, bytesOf)) },
    answers,
  };
}

export async function record(world: StoredWorld, version: number): Promise<void> {
  const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
  const { items, contents } = { items: world.table.items.filter(isNeeded(world)), contents: world.objects.contents };
  const objects = Object.entries(contents).filter(([key]) => items.some((i) => key.endsWith(`/${i['s3']?.S}`)));
  const saved: Recorded = {
    items: items.map((item) => mapped(item, (v) => (v.B === undefined ? { ...v } : { B: base64(v.B) }))),
    objects: mapped(Object.fromEntries(objects), base64),
    answers: await answersOf(opened(world)),
  };
  await writeFile(fileOf(version), gzipSync(JSON.stringify(saved), { level: 9 }));
}

/** Commits that were compacted long ago expire. */
function isNeeded({ table }: StoredWorld): (item: Item) => boolean {
  const head = table.items.find((item) => item['pk']?.S === HEAD.pk);
  const carried = Number(head?.['commits']?.N ?? 0);
  return (item) => item['pk']?.S !== LOG || Number(item['sk']?.S) > carried;
}

const mapped = <A, B>(record: Readonly<Record<string, A>>, of: (value: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value)]));
