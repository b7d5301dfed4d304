import { EbbError, type ErrorCode } from '../../../kernel/errors.ts';

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html) that people can act on. */
const FAULTS: Readonly<Record<number, { readonly code: ErrorCode; readonly what: string; readonly next: string }>> = {
  5: {
    code: 'too-many-requests',
    what: 'the database is busy: another process has been writing for too long',
    next: 'try again; if it stays so, end the process that holds the database',
  },
  8: {
    code: 'store.corrupt',
    what: 'the database cannot be written',
    next: 'make the file and its folder writable',
  },
  10: {
    code: 'store.corrupt',
    what: 'the database cannot be read or written: the disk reports an error',
    next: 'check the disk, then move the folder away and make it again: `ebb restore FILE --dir DIR` (docs/local-mode.md)',
  },
  11: {
    code: 'store.corrupt',
    what: 'the database is damaged',
    next: 'move the folder away, and make it again from a backup: `ebb restore FILE --dir DIR` (docs/local-mode.md)',
  },
  13: {
    code: 'store.full',
    what: 'nothing can be written: the disk is full',
    next: 'free some space; nothing of this write was kept, so it can be repeated',
  },
  14: {
    code: 'store.corrupt',
    what: 'the database cannot be opened',
    next: 'check that the path is a file in a folder that exists and that you may write',
  },
  26: {
    code: 'store.corrupt',
    what: 'this file is not a database',
    next: 'move it away, or name another folder',
  },
};

const FULL = 13;
/** SQLITE_IOERR_SHMSIZE: an I/O error by its code; the disk has no room for the index of the log. */
const NO_ROOM_FOR_INDEX = 4874;

/** EbbError of an error of SQLite; anything else is a defect. `path` is shown to people. */
export function classify(error: unknown, path: string): EbbError {
  if (error instanceof EbbError) return error;
  const { errcode, message } = error as { errcode?: number; message?: string };
  const fault = typeof errcode === 'number' ? FAULTS[errcode === NO_ROOM_FOR_INDEX ? FULL : errcode & 0xff] : undefined;
  if (fault === undefined) {
    return new EbbError('internal', {
      what: `the database refused a statement: ${message ?? String(error)}`,
      cause: error,
    });
  }
  return new EbbError(fault.code, {
    what: fault.what,
    got: `${path}: ${message ?? `SQLite error ${errcode}`}`,
    next: fault.next,
    cause: error,
  });
}
