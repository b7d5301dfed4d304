import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { JobList, JobView } from '../../api/schemas.ts';
import type { Client } from '../client.ts';
import { makeContext, type World } from '../context.ts';
import { routes } from '../routes.ts';
import type { Position } from './position.ts';
import type { Candidate, Completion } from './candidate.ts';

/** Values without fixed `choices`: names of presets, settings, instance types, versions and jobs. */

type Values = (position: Position, world: World) => Promise<Completion> | Completion;

/** Longest wait for an engine: the shell waits meanwhile. A later answer completes nothing. */
const ENGINE_WAIT_MS = 1_500;
/** Newest jobs that are proposed. */
const JOBS = 200;

const NOTHING: Completion = { candidates: [], paths: 'none' };
const FILES: Completion = { candidates: [], paths: 'files' };
const FOLDERS: Completion = { candidates: [], paths: 'folders' };
const among = (candidates: readonly Candidate[]): Completion => ({ candidates, paths: 'none' });
const words = (...values: readonly string[]): Completion => among(values.map((value) => ({ value, about: '' })));

/** Values by attribute name of an option, or by name of an argument. Other names complete nothing. */
const VALUES: Readonly<Record<string, Values>> = {
  // Paths.
  file: () => FILES,
  source: () => FILES,
  sources: () => FILES,
  markets: () => FILES,
  catalogue: () => FILES,
  output: () => FILES,
  report: () => FILES,
  log: () => FILES,
  svg: () => FILES,
  html: () => FILES,
  python: () => FILES,
  dumpModel: () => FILES,
  tokenFile: () => FILES,
  market: () => FILES,
  dir: () => FOLDERS,
  cache: () => FOLDERS,
  replay: () => FOLDERS,
  workload: ({ current }) =>
    current !== '' && 'synthetic:'.startsWith(current)
      ? { candidates: [{ value: 'synthetic:', about: 'jobs made from a seed' }], paths: 'files' }
      : FILES,
  // Names of the program.
  preset: async ({ command }) => among(await presets(command.name() === 'simulate')),
  compare: async ({ current }) => among(inList(current, await presets(true))),
  set: async ({ current }) => among(await settings(current)),
  workloadOption: async ({ current }) => {
    const { workloadOptions } = await import('../../workload/options.ts');
    return among(keys(workloadOptions.shape, current));
  },
  regime: () => words('mixed', 'smooth', 'spiky'),
  temper: () => words('natural', 'turbulent'),
  type: async () => among(await instanceTypes()),
  types: async ({ current }) => among(inList(current, await instanceTypes())),
  version: async ({ given }, world) => among(await versions(given, world)),
  // Names that the engine knows.
  job: ({ command, given }, world) =>
    fromEngine(given, world, async (client) => jobNames(client, STATES[command.name()])),
  stage: ({ given, args }, world) =>
    fromEngine(given, world, async (client) => {
      const job = await client.get<JobView>(routes.job(args[0] ?? ''));
      return job.stages.map((s) => ({ value: s.name, about: `${s.tasks.total} tasks` }));
    }),
  owner: ({ given }, world) =>
    fromEngine(given, world, async (client) => {
      const { items } = await client.get<JobList>(routes.jobs, { limit: JOBS });
      return items.map((j) => ({ value: j.owner, about: '' }));
    }),
};
/** States of jobs that a command accepts; a missing command accepts any. */
const STATES: Readonly<Record<string, readonly string[]>> = {
  cancel: ['pending', 'running', 'held'],
  release: ['held'],
};

export async function valuesOf(name: string, position: Position, world: World): Promise<Completion> {
  const values = Object.hasOwn(VALUES, name) ? VALUES[name] : undefined;
  // `--name` of `ebb jobs` is the name of a job; elsewhere it is a new name.
  if (name === 'name' && position.command.name() === 'jobs') return valuesOf('job', position, world);
  return values === undefined ? NOTHING : values(position, world);
}

async function presets(simulated: boolean): Promise<Candidate[]> {
  const { deciderList } = await import('../../drivers/sim/deciders.ts');
  return deciderList()
    .filter(({ name }) => simulated || name !== 'oracle')
    .map(({ name, about }) => ({ value: name, about }));
}

async function instanceTypes(): Promise<Candidate[]> {
  const { builtInCatalogue } = await import('../../market/catalogue.ts');
  return builtInCatalogue()
    .types()
    .map((value) => ({ value, about: '' }));
}

/** Next name of a list with commas, without the names already in it. */
function inList(current: string, all: readonly Candidate[]): Candidate[] {
  const before = current.slice(0, current.lastIndexOf(',') + 1);
  const used = new Set(before.split(','));
  return all.filter((c) => !used.has(c.value)).map(({ value, about }) => ({ value: before + value, about }));
}

async function settings(current: string): Promise<Candidate[]> {
  const { schedulerConfig } = await import('../../domain/config.ts');
  const { shape } = schedulerConfig;
  // Names of presets are not in the schema.
  if (current.startsWith('preset=')) {
    return (await presets(false)).map(({ value, about }) => ({ value: `preset=${value}`, about }));
  }
  return keys(shape, current);
}

/** `key=` for each key of a schema. After a key its values, if the schema lists them. */
function keys(shape: Readonly<Record<string, z.ZodType>>, current: string): Candidate[] {
  const at = current.indexOf('=');
  if (at === -1) {
    return Object.entries(shape).map(([key, schema]) => ({ value: `${key}=`, about: schema.description ?? '' }));
  }
  const key = current.slice(0, at);
  const schema = Object.hasOwn(shape, key) ? shape[key] : undefined;
  return schema === undefined ? [] : listed(schema).map((value) => ({ value: `${key}=${value}`, about: '' }));
}

/** Values listed by a schema: an enumeration, or true and false. */
function listed(schema: z.ZodType): string[] {
  const described = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  if (described.type === 'boolean') return ['true', 'false'];
  return (described.enum ?? []).map(String);
}

async function versions(given: Position['given'], world: World): Promise<Candidate[]> {
  const { modelPlaces } = await import('../../drivers/local/models/model-places.ts');
  const { modelVersions } = await import('../../models/versions.ts');
  const risk = given.get('risk') === 'capacity' ? 'capacity' : 'price';
  const found = await modelVersions(modelPlaces(resolve(world.cwd, given.get('dir') ?? '.ebb'), risk));
  return found.map(({ version, from }) => ({ value: version, about: from }));
}

/** Names of jobs; the id if several jobs have the name. */
async function jobNames(client: Client, state: readonly string[] | undefined): Promise<Candidate[]> {
  const { items } = await client.get<JobList>(routes.jobs, { state, limit: JOBS });
  const times = Map.groupBy(items, (j) => j.name);
  return items.map((j) => {
    const isOnly = times.get(j.name)?.length === 1;
    return { value: isOnly ? j.name : j.id, about: isOnly ? j.state : `${j.name}, ${j.state}` };
  });
}

/**
 * Answer of an engine at an address, or nothing if it is late. A deployment on AWS is not asked: each request costs
 * money and looks for credentials first.
 */
async function fromEngine(
  given: Position['given'],
  world: World,
  ask: (client: Client) => Promise<Candidate[]>,
): Promise<Completion> {
  if ((given.get('stack') ?? world.env['EBB_STACK'] ?? '') !== '') return NOTHING;
  const options = { ...Object.fromEntries(given), color: false };
  const asked = makeContext(world, options).client().then(ask);
  const late = delay(ENGINE_WAIT_MS, null, { ref: false });
  const found = await Promise.race([asked, late]).catch(() => null);
  return found === null ? NOTHING : among(found);
}
