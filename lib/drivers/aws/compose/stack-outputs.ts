/** Description of the stack output with the address of an Ebbtide API. The command line finds deployments by it. */
export const API_URL_DESCRIPTION = 'Address of the Ebbtide API.';

/** Name of the main stack, which has everything but the data. */
export const mainStackName = (deployment: string): string => (deployment === 'ebbtide' ? 'Ebbtide' : deployment);
export const CONSTRUCT_ID = 'Ebbtide';
