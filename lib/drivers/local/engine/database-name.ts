/** File of the store in an engine's folder. */
export const DATABASE = 'ebb.db';
