/**
 * Local engine behind an HTTP API, as in `ebb up`: real admission, engine thread and instances. For the fuzzer, so
 * checked jobs and replicas lose their commands and files: every task runs `true`. Prints one line of JSON with its
 * address. Ends on SIGTERM with its number of answers per status.
 *
 *   node scripts/serve-engine.ts --dir FOLDER
 */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { EbbError } from '../lib/kernel/errors.ts';
import { provideBackend } from '../lib/api/provided-backend.ts';
import { dispatcher } from '../lib/api/dispatch.ts';
import type { JobSpec } from '../lib/domain/job.ts';
import { openEngine } from '../lib/drivers/local/engine/local-engine.ts';
import { serveApi } from '../lib/api/server/server.ts';
import { handler as api } from '../lambdas/api/handler.ts';
import { handler as intake } from '../lambdas/intake/handler.ts';
import { counted } from './counted-answers.ts';

const { values } = parseArgs({ options: { dir: { type: 'string' } } });
if (values.dir === undefined) throw new EbbError('usage', { what: '--dir is missing', next: 'Name an empty folder.' });

const engine = await openEngine({
  dir: values.dir,
  market: null,
  fromMs: null,
  speed: 60,
  seed: 1,
  preset: null,
  config: {},
  vcpus: 8,
  dumpModel: null,
  altered: (spec: JobSpec): JobSpec => ({
    ...spec,
    stages: spec.stages.map((s) => ({ ...s, command: ['true'], inputs: [], outputs: [] })),
  }),
});
provideBackend(engine.backend);

const { dispatch, answers } = counted(dispatcher({ intake, api }));

await engine.start();
const server = await serveApi({ dispatch, port: 0 });
console.log(JSON.stringify({ url: server.url }));
await Promise.race([once(process, 'SIGTERM'), engine.failed]);
await server.close();
await engine.stop('at-once');
console.log(JSON.stringify({ answers }));
