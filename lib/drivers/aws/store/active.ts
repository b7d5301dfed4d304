import { instanceId, type InstanceId } from '../../../kernel/ids.ts';
import { isLive, type Instance } from '../../../domain/instance.ts';
import { isOver, type Attempt, type Job, type JobSpec, type Task } from '../../../domain/job.ts';
import type { ActiveState, EffectRecord } from '../../../ports/store.ts';
import type { Blobs } from './blobs.ts';
import type { Documents } from './cache.ts';
import { isOpenAttempt, isOpenTask } from './documents.ts';
import { jobOf, specsOf } from './job-items.ts';
import { itemOfPartition, type Key } from './keys.ts';

/**
 * Loads the active state of a cycle. The first load of a process reads all open work, later ones only what commits
 * changed since. So a load costs as much as has changed.
 */
export class ActiveLoader {
  readonly #blobs: Blobs;
  /** Specifications stored beside the active jobs of the last load. They never change. */
  #specs = new Map<string, JobSpec>();

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  /** Active state from documents of the newest commit. */
  async load(documents: Documents): Promise<ActiveState> {
    const active = await documents.active();
    const cursors = new Map([...active.values()].flatMap((doc) => Object.entries(doc)));
    const keys = [...cursors.keys()].map(itemOfPartition);
    const jobKeys = keys.filter((key) => key.sk === 'JOB');
    const instanceKeys = keys.filter((key) => key.sk === 'INSTANCE');
    await documents.load(keys);
    const runKeys = jobKeys.flatMap(({ pk, sk }) =>
      Object.keys(documents.job({ pk, sk }).open).map((run): Key => ({ pk, sk: run })),
    );
    await documents.load(runKeys);
    const jobs = await this.#jobs(documents, jobKeys);
    const known = new Set(jobs.map((j) => j.id));
    const runs = [
      ...runKeys.map((key) => documents.runs(key)),
      ...jobKeys.flatMap((key) => documents.job(key).runs ?? []),
    ];
    return {
      jobs,
      tasks: runs.flatMap((doc): Task[] => Object.values(doc.tasks).filter((t) => isOpenTask(t) && known.has(t.job))),
      attempts: ordered<Attempt>(runs.flatMap((doc) => doc.attempts)).filter(isOpenAttempt),
      instances: ordered<Instance>(
        instanceKeys.flatMap((key) => {
          const { arrival, instance } = documents.instance(key);
          return instance === null || !isLive(instance) ? [] : [[arrival ?? 0, instance] as const];
        }),
      ),
      openEffects: ordered<EffectRecord>([...(await documents.effects()).items.values()].flat()),
      cursors: new Map(
        instanceKeys.flatMap((key): (readonly [InstanceId, number])[] => {
          const cursor = cursors.get(key.pk) ?? null;
          return cursor === null ? [] : [[instanceId(key.pk.slice(2)), cursor]];
        }),
      ),
    };
  }

  async #jobs(documents: Documents, keys: readonly Key[]): Promise<Job[]> {
    const open = keys.filter((key) => {
      const { body } = documents.job(key);
      return body !== null && !isOver(body.state);
    });
    const specs = new Map<string, JobSpec>();
    const missing: string[] = [];
    for (const key of open) {
      const id = key.pk.slice(2);
      const known = documents.job(key).spec ?? this.#specs.get(id);
      if (known === undefined) missing.push(id);
      else specs.set(id, known);
    }
    for (const [id, spec] of await specsOf(documents.view, this.#blobs, missing)) specs.set(id, spec);
    this.#specs = specs;
    return ordered<Job>(
      open.flatMap((key) => {
        const doc = documents.job(key);
        const spec = specs.get(key.pk.slice(2));
        const job = spec === undefined ? null : jobOf(doc, spec);
        return job === null ? [] : [[doc.arrival ?? 0, job] as const];
      }),
    );
  }
}

const ordered = <T>(entries: readonly (readonly [number, T])[]): T[] =>
  [...entries].sort(([a], [b]) => a - b).map(([, value]) => value);
