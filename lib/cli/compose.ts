/**
 * The composition root of the command line: the engine of this process with the API's handlers in front of it. Nothing
 * else in lib/cli knows which store, fleet, market or server there is.
 */
import { handler as api } from '../../lambdas/api/handler.ts';
import { handler as intake } from '../../lambdas/intake/handler.ts';
import { provideBackend } from '../api/backend.ts';
import { dispatcher } from '../api/dispatch.ts';
import { openEngine, type LocalEngineOptions, type StopManner } from '../local/engine.ts';
import { serveApi, type ApiServer } from '../local/http/server.ts';
import { clientOver } from './client.ts';
import type { Embedded } from './embedded.ts';

/** Takes the directory (or throws `engine.running`, `store.newer`, `market.invalid`); nothing runs before `start`. */
export async function openEmbedded(options: LocalEngineOptions): Promise<Embedded> {
  const engine = await openEngine(options);
  provideBackend(engine.backend);
  const dispatch = dispatcher({ intake, api });
  let server: ApiServer | null = null;
  return {
    client: clientOver((request) => dispatch(request)),
    start: () => engine.start(),
    failed: engine.failed,
    listen: async ({ bind, port, token }) => {
      server = await serveApi({ dispatch, host: bind, port, token });
      return server.url;
    },
    stop: async (manner: StopManner) => {
      await server?.close();
      await engine.stop(manner);
      provideBackend(null);
    },
  };
}
