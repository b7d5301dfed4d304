/**
 * Describes the output of a stack that holds the address of an Ebbtide API: by it the command line finds the
 * deployment.
 */
export const API_URL_DESCRIPTION = 'Address of the Ebbtide API.';

/** Name of the stack that has everything but the data; what the construct is called in it. */
export const mainStackName = (deployment: string): string => (deployment === 'ebbtide' ? 'Ebbtide' : deployment);
export const CONSTRUCT_ID = 'Ebbtide';
