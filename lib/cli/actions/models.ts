import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { checkVersion } from '../../drivers/local/models/check.ts';
import { ownDrift } from '../../drivers/local/models/own-drift.ts';
import { modelPlaces } from '../../drivers/local/models/model-places.ts';
import { addChoice, knownChoices, standing, type Choice } from '../../models/choices.ts';
import { libraryOf, versionNamed } from '../../models/library.ts';
import type { Risk } from '../../models/preemption.ts';
import { modelInUse, type InUse } from '../../models/versions.ts';
import { refuseElsewhere, type Action, type Context } from '../context.ts';
import { json } from '../output.ts';
import type { DriftRisk } from '../../market/forecast/drift.ts';
import { driftText } from '../views/drift.ts';
import { historyTable, inUseText, modelPage, modelsTable, SETTING } from '../views/model-views.ts';
import type { ListOptions, ShowOptions, UseOptions } from '../flags/model-flags.ts';

/** Folders of versions: on this machine, also for a deployment, which gets them when it is deployed. */
export const placesOf = ({ world }: Context, options: { readonly dir: string; readonly risk: Risk }) => {
  refuseElsewhere(
    options,
    'name the directory of an engine with --dir; of a deployment `train` and `evaluate` can ask for the instances that it held (--risk capacity), `ebb pools --drift` for its drift, and docs/forecast-training.md says how its version is chosen',
  );
  return modelPlaces(resolve(world.cwd, options.dir), options.risk);
};

export const list: Action<ListOptions> = async (context, _args, options) => {
  const { output, json: asJson } = context;
  const library = await libraryOf(placesOf(context, options));
  if (asJson) json(output, library);
  else {
    output.line(modelsTable(output, library.models));
    output.line(inUseText(library.inUse, options.risk, ' (*)'));
  }
};

const NO_ENGINE = 'Drift: no engine has worked in this directory';
const DRIFT_PAGE = { whose: 'forecasts of this version', limit: 10, rest: 0 } as const;
/** Drift of price forecasts includes capacity losses. */
const DRIFT_RISK: Record<Risk, DriftRisk> = { price: 'any', capacity: 'capacity' };

export const show: Action<ShowOptions> = async (context, [version], options) => {
  const { output, json: asJson } = context;
  const places = placesOf(context, options);
  const library = await libraryOf(places);
  const wanted = await versionNamed(places, version ?? usedIn(library.inUse, options.risk));
  const model = library.models.find((m) => m.version === wanted.version);
  if (model === undefined) {
    throw new EbbError('not-found', { what: 'the version no longer exists', got: wanted.version });
  }
  const check = await checkVersion(model.folder, options.risk);
  const risk = DRIFT_RISK[options.risk];
  const drift = await ownDrift(resolve(context.world.cwd, options.dir), { risk, by: model.version });
  if (asJson) json(output, { ...model, check, drift });
  else {
    output.line(modelPage(output, model, check));
    output.line(`\n${drift === null ? NO_ENGINE : driftText(output, drift, { ...DRIFT_PAGE, risk })}`);
  }
  return check.kind === 'whole' || check.kind === 'no-runtime' ? 0 : 9;
};

function usedIn(inUse: InUse, risk: Risk): string {
  if (inUse.kind === 'version') return inUse.version;
  if (inUse.kind === 'none') throw noneInUse(risk);
  throw new EbbError('not-found', { what: inUse.what, next: 'remove it, or name a version: see `ebb models list`' });
}

/** Error for a risk without a model. Price models come with the program, capacity models do not. */
export const noneInUse = (risk: Risk): EbbError =>
  new EbbError('not-found', {
    what: 'no version of the model is in use',
    next:
      risk === 'price'
        ? 'name one: see `ebb models list`'
        : 'train one with `ebb models train --risk capacity`, or name one: see `ebb models list --risk capacity`',
  });

export const use: Action<UseOptions> = async (context, [version], options) => {
  const { output, json: asJson } = context;
  const places = placesOf(context, options);
  const isRollback = options.rollback === true;
  if ((version === undefined) !== isRollback) {
    throw new EbbError('usage', {
      what: isRollback ? '--rollback takes the last choice back, and names no version' : 'no version is named',
      next: 'name one version, or give --rollback alone: see `ebb models list` and `ebb models history`',
    });
  }
  const choices = knownChoices(places.own);
  const [before, current] = [standing(choices).at(-2), standing(choices).at(-1)];
  const made = { at: new Date().toISOString(), by: userInfo().username, why: options.why ?? '' };
  if (version === undefined) {
    if (current === undefined) {
      throw new EbbError('conflict', {
        what: `no choice to undo: ${inUseText(await modelInUse(places), options.risk)}`,
        next: 'choose one with `ebb models use VERSION`',
      });
    }
    if (before !== undefined) await mustBeWhole(places, before.version, options.risk);
    addChoice(places.own, { kind: 'rollback', ...made });
  } else if (current?.version !== version) {
    await mustBeWhole(places, version, options.risk);
    addChoice(places.own, { kind: 'use', version, ...made });
  }
  const inUse = await modelInUse(places);
  if (asJson) json(output, inUse);
  else {
    output.line(inUseText(inUse, options.risk));
    output.note(`an engine that forecasts with \`${SETTING[options.risk]}=model\` takes it up with its next decision`);
  }
};

/** Throws for a version that cannot be loaded: choosing it would silently leave forecasts without a model. */
async function mustBeWhole(places: ReturnType<typeof modelPlaces>, version: string, risk: Risk): Promise<void> {
  const check = await checkVersion((await versionNamed(places, version)).folder, risk);
  if (check.kind === 'whole') return;
  throw new EbbError('model.unusable', {
    what: 'this version cannot be asked, so it is not chosen',
    got: check.what,
    next:
      check.kind === 'no-runtime'
        ? 'install ONNX Runtime beside ebb: npm install onnxruntime-node'
        : 'restore its files, or choose another: `ebb models list`',
  });
}

export const history: Action<ListOptions> = async (context, _args, options) => {
  const { output, json: asJson } = context;
  const places = placesOf(context, options);
  const choices: readonly Choice[] = knownChoices(places.own);
  const inUse = await modelInUse(places);
  if (asJson) json(output, { inUse, choices });
  else {
    output.line(historyTable(output, choices));
    output.line(inUseText(inUse, options.risk));
  }
};
