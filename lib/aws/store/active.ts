import { instanceId } from '../../kernel/ids.ts';
import { isLive, type Instance } from '../../domain/instance.ts';
import { isOver, type Attempt, type Job, type JobSpec, type Task } from '../../domain/job.ts';
import type { EffectRecord } from '../../ports/store.ts';
import type { ActiveState } from '../../ports/store.ts';
import { lapsedLive } from './changes.ts';
import type { Blobs } from './blobs.ts';
import { isOpenAttempt, isOpenTask, type Documents } from './documents.ts';
import { jobOf, liveItems, specsOf } from './jobs.ts';
import type { Key } from './keys.ts';
import type { Table, Write } from './table.ts';

/**
 * What a cycle loads. The first load of a process reads what is not over; later ones, while nobody else has committed,
 * read the list of what is not over and whatever is new in it: submissions and cancel requests.
 */
export class ActiveLoader {
  readonly #table: Table;
  readonly #blobs: Blobs;
  readonly #documents: Documents;
  /** Specifications of the jobs that were active when last loaded: they never change. */
  #specs = new Map<string, JobSpec>();
  #lapsed: readonly Write[] = [];

  constructor(table: Table, blobs: Blobs, documents: Documents) {
    this.#table = table;
    this.#blobs = blobs;
    this.#documents = documents;
  }

  /** How to take away entries that loads found of what is over. */
  takeLapsed(): readonly Write[] {
    const lapsed = this.#lapsed;
    this.#lapsed = [];
    return lapsed;
  }

  async load(commits: number): Promise<ActiveState> {
    const documents = this.#documents.at(commits);
    const live = await liveItems(this.#table, '');
    const jobKeys = live.filter((l) => l.key.sk === 'JOB');
    const instanceKeys = live.filter((l) => l.key.sk === 'INSTANCE').map((l) => l.key);
    for (const { key } of jobKeys) documents.forgetAbsent(key);
    await documents.load(live.map((l) => l.key));
    this.#lapsed = live.flatMap(({ key }) => (documents.isOver(key) ? [lapsedLive(key, commits)] : []));
    for (const { key, isCancelled } of jobKeys) if (isCancelled) documents.cancelled(key);
    const runKeys = jobKeys.flatMap(({ key }) =>
      Object.keys(documents.job(key).open).map((sk): Key => ({ pk: key.pk, sk })),
    );
    await documents.load(runKeys);
    const jobs = await this.#jobs(jobKeys.map((l) => l.key));
    const active = new Set(jobs.map((j) => j.id));
    const runs = [
      ...runKeys.map((key) => documents.runs(key)),
      ...jobKeys.flatMap(({ key }) => documents.job(key).runs ?? []),
    ];
    return {
      jobs,
      tasks: runs.flatMap((doc): Task[] => Object.values(doc.tasks).filter((t) => isOpenTask(t) && active.has(t.job))),
      attempts: ordered<Attempt>(runs.flatMap((doc) => doc.attempts)).filter(isOpenAttempt),
      instances: ordered<Instance>(
        instanceKeys.flatMap((key) => {
          const { arrival, instance } = documents.instance(key);
          return instance === null || !isLive(instance) ? [] : [[arrival ?? 0, instance] as const];
        }),
      ),
      openEffects: ordered<EffectRecord>([...(await documents.effects()).items.values()].flat()),
      cursors: new Map(
        instanceKeys.flatMap((key) => {
          const { cursor } = documents.instance(key);
          return cursor === null ? [] : [[instanceId(key.pk.slice(2)), cursor] as const];
        }),
      ),
    };
  }

  async #jobs(keys: readonly Key[]): Promise<Job[]> {
    const open = keys.filter((key) => {
      const { body } = this.#documents.job(key);
      return body !== null && !isOver(body.state);
    });
    const specs = new Map<string, JobSpec>();
    const missing: string[] = [];
    for (const key of open) {
      const id = key.pk.slice(2);
      const known = this.#documents.job(key).spec ?? this.#specs.get(id);
      if (known === undefined) missing.push(id);
      else specs.set(id, known);
    }
    for (const [id, spec] of await specsOf(this.#table, this.#blobs, missing)) specs.set(id, spec);
    this.#specs = specs;
    return ordered<Job>(
      open.flatMap((key) => {
        const doc = this.#documents.job(key);
        const spec = specs.get(key.pk.slice(2));
        const job = spec === undefined ? null : jobOf(doc, spec);
        return job === null ? [] : [[doc.arrival ?? 0, job] as const];
      }),
    );
  }
}

const ordered = <T>(entries: readonly (readonly [number, T])[]): T[] =>
  [...entries].sort(([a], [b]) => a - b).map(([, value]) => value);
