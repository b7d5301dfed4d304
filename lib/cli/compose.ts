/**
 * Composition root of the command line: the engine of this process behind the handlers of the API. No other file of
 * lib/cli knows the store, fleet, market or server.
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

/** Opens the directory; nothing runs before `start`. Throws `engine.running`, `store.newer`, `market.invalid`. */
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
