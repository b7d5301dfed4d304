import { setTimeout as delay } from 'node:timers/promises';
import type {
  ApplyAnswer,
  ServiceAnswer,
  ServiceExplanationView,
  ServiceListView,
  ServiceView,
} from '../../api/services/schemas.ts';
import { EbbError, ERROR_CODES } from '../../kernel/errors.ts';
import type { Client } from '../client.ts';
import type { Action, Context } from '../context.ts';
import type { ApplyOptions, ServiceLogsOptions } from '../flags/service-flags.ts';
import { plural } from '../format.ts';
import { json, type Output } from '../output.ts';
import { routes } from '../routes.ts';
import { appliedText, applyOne, readServiceSources } from '../service-source.ts';
import { onStopRequest } from '../signals.ts';
import { serviceExplanationText, servicesTable, serviceStatus } from '../views/service-views.ts';
import { text } from '../views/text-table.ts';
import { logs as jobLogs } from './logs.ts';

/** Wall time between two looks at a service. */
const POLL_MS = 500;

/** All files are read before the first is applied. */
export const apply: Action<ApplyOptions> = async (context, files, options) => {
  const { world, output, json: asJson, client } = context;
  const sources = await readServiceSources(files, world);
  const engine = await client();
  const answers: ApplyAnswer[] = [];
  for (const source of sources) {
    const answer = await applyOne(engine, source);
    answers.push(answer);
    if (!asJson) output.line(appliedText(answer));
    for (const note of answer.admission.notes) output.note(`${text(answer.service.name)}: ${note}`);
  }
  let exit = 0;
  if (options.wait === true) {
    for (const { service } of answers) exit = Math.max(exit, await settled(engine, service, output));
  }
  if (asJson) json(output, answers.length === 1 ? answers[0] : answers);
  return exit;
};

/** Waits for an update. Exit code: 0 if its revision is in place, else that of a failed job. */
async function settled(engine: Client, applied: ApplyAnswer['service'], output: Output): Promise<number> {
  const failed = ERROR_CODES['job.failed'].exit;
  for (;;) {
    const now = await engine.get<ServiceView>(routes.service(applied.name));
    if (now.revision !== applied.revision) {
      const why = now.lastFailure === null ? '' : `: ${text(now.lastFailure)}`;
      output.note(`error: revision ${applied.revision} of ${text(now.name)} was replaced by ${now.revision}${why}`);
      return failed;
    }
    if (now.state === 'failing') {
      output.note(`error: ${text(now.name)} fails: ${text(now.detail)}`);
      return failed;
    }
    if (now.state === 'healthy' && now.update === null) {
      output.note(
        `${text(now.name)} is healthy: ${plural(now.replicas.healthy, 'replica')} at ${now.url ?? 'no address'}`,
      );
      return 0;
    }
    await delay(POLL_MS);
  }
}

export const list: Action<object> = async ({ output, json: asJson, client }) => {
  const found = await (await client()).get<ServiceListView>(routes.services);
  if (asJson) json(output, found);
  else output.line(servicesTable(output, found.items));
};

export const status: Action<object> = async ({ output, json: asJson, client }, [name = '']) => {
  const service = await (await client()).get<ServiceView>(routes.service(name));
  if (asJson) json(output, service);
  else output.line(serviceStatus(output, service));
};

export const explain: Action<object> = async ({ output, json: asJson, client }, [name = '']) => {
  const view = await (await client()).get<ServiceExplanationView>(routes.explainService(name));
  if (asJson) json(output, view);
  else output.line(serviceExplanationText(output, view));
};

export const scale: Action<object> = async ({ output, json: asJson, client }, [name = '', given = '']) => {
  const replicas = given === 'auto' ? null : /^\d{1,5}$/.test(given) ? Number(given) : undefined;
  if (replicas === undefined) {
    throw new EbbError('usage', {
      what: 'this is no number of replicas',
      got: given,
      allowed: 'a number up to `max` of the service file, or `auto`',
    });
  }
  const answer = await (await client()).post<ServiceAnswer>(routes.scaleService(name), { body: { replicas } });
  if (asJson) json(output, answer);
  else {
    const how = replicas === null ? 'follows its scaling policy' : `is set to ${plural(replicas, 'replica')}`;
    output.line(`${text(answer.service.name)} ${how}`);
  }
};

export const remove: Action<object> = async ({ output, json: asJson, client }, [name = '']) => {
  const answer = await (await client()).delete<ServiceAnswer>(routes.service(name));
  if (asJson) json(output, answer);
  else output.line(`${text(answer.service.name)} is being deleted: its replicas are drained first`);
};

export const logs: Action<ServiceLogsOptions> = async (context, [name = ''], options) => {
  const service = await (await context.client()).get<ServiceView>(routes.service(name));
  const { replicaList } = service;
  const replica =
    options.replica === undefined ? replicaList.at(-1) : replicaList.find((r) => r.number === options.replica);
  if (replica === undefined) {
    throw new EbbError('not-found', {
      what: options.replica === undefined ? 'the service has no replica now' : 'the service has no such replica now',
      ...(options.replica === undefined ? {} : { got: String(options.replica) }),
      allowed: replicaList.map((r) => r.number).join(', ') || 'none',
      next: 'logs of earlier replicas are those of their jobs: `ebb jobs --label ebb.service=NAME`, `ebb logs JOB`',
    });
  }
  const { replica: _, ...rest } = options;
  return jobLogs(context, [replica.job], { ...rest, task: 0 });
};

export const watch: Action<object> = async (context, [name = '']) => {
  const engine = await context.client();
  const stop = new AbortController();
  const unlisten = onStopRequest(() => stop.abort());
  try {
    await watchService({ engine, context, name, signal: stop.signal });
  } finally {
    unlisten();
  }
  return 0;
};

interface Watching {
  readonly engine: Client;
  readonly context: Context;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** Redrawn on a terminal; else a line, or a line of JSON, for each monitoring period and each change of state. */
async function watchService({ engine, context, name, signal }: Watching): Promise<void> {
  const { output, json: asJson } = context;
  const redraw = output.live && !asJson ? (await import('log-update')).default : null;
  let said = '';
  try {
    while (!signal.aborted) {
      const now = await gone(engine.get<ServiceView>(routes.service(name)), said !== '');
      if (now === null) {
        output.note(`${text(name)} is deleted`);
        return;
      }
      const key = `${now.state} ${now.detail} ${now.lastPeriod?.toAt ?? ''}`;
      if (redraw !== null) redraw(output.drawn(serviceStatus(output, now)));
      else if (key !== said) {
        if (asJson) json(output, now);
        else output.line(watchLine(now));
      }
      said = key;
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    redraw?.done();
  }
}

/** Null for a service that was there, and is deleted. */
const gone = <T>(asked: Promise<T>, wasThere: boolean): Promise<T | null> =>
  asked.catch((error: unknown) => {
    if (wasThere && error instanceof EbbError && error.code === 'not-found') return null;
    throw error;
  });

function watchLine({ asOf, state, detail, rps, lastPeriod, replicas }: ServiceView): string {
  const load = lastPeriod === null ? '' : `; ${rps ?? 0} rps, ${lastPeriod.slow} slow, ${lastPeriod.failed} failed`;
  return `${asOf.slice(11, 19)} ${state}: ${text(detail)} (${replicas.healthy}/${replicas.wanted})${load}`;
}
