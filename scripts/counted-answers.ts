import type { Dispatch } from '../lib/api/dispatch.ts';

/** Dispatcher with a count of its answers by status. */
export function counted(of: Dispatch): {
  readonly dispatch: Dispatch;
  readonly answers: Readonly<Record<string, number>>;
} {
  const answers: Record<string, number> = {};
  const dispatch: Dispatch = async (request) => {
    const response = await of(request);
    answers[response.status] = (answers[response.status] ?? 0) + 1;
    return response;
  };
  return { dispatch, answers };
}
