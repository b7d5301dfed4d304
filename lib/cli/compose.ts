/**
 * The composition root of the command line: the engine of this process with the API's handlers in front of it. Nothing
 * else in lib/cli knows which store, fleet, market or server there is.
 */
import { handler as api } from '../../lambdas/api/handler.ts';
import { handler as intake } from '../../lambdas/intake/handler.ts';
import { provideBackend } from '../api/provided-backend.ts';
import { dispatcher } from '../api/dispatch.ts';
import { openEngine, type LocalEngineOptions, type StopManner } from '../drivers/local/engine/local-engine.ts';
import { ownUser } from '../api/server/peers.ts';
import { serveApi, type ApiServer } from '../api/server/server.ts';
import { clientOver } from './client.ts';
import type { Embedded } from './embedded.ts';

/** Takes the directory (or throws `engine.running`, `store.newer`, `market.invalid`); nothing runs before `start`. */
export async function openEmbedded(options: LocalEngineOptions): Promise<Embedded> {
  let server: ApiServer | null = null;
  const { onInterrupted } = options;
  const engine = await openEngine({
    ...options,
    ...(onInterrupted && {
      onInterrupted: (afterS: number) => {
        server?.dropOpen();
        onInterrupted(afterS);
      },
    }),
  });
  provideBackend(engine.backend);
  const dispatch = dispatcher({ intake, api });
  const caller = ownUser();
  return {
    client: clientOver((request) => dispatch({ ...request, caller })),
    start: () => engine.start(),
    failed: engine.failed,
    listen: async ({ bind, ...at }) => {
      server = await serveApi({ dispatch, host: bind, ...at });
      return server.url;
    },
    stop: async (manner: StopManner) => {
      await server?.close();
      await engine.stop(manner);
      provideBackend(null);
    },
  };
}
