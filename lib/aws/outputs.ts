/** Describes the output of a stack that holds the address of an Ebbtide API: by it the command line finds the deployment. */
export const API_URL_DESCRIPTION = 'Address of the Ebbtide API.';
