import { EbbError } from '../../lib/kernel/errors.ts';

/** The code of the EbbError that it ends with. */
export const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'no error';
  } catch (error) {
    return error instanceof EbbError ? error.code : `not an EbbError: ${String(error)}`;
  }
};
