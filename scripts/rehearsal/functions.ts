/** Functions of LocalStack, invoked without the SDK of Lambda. */

interface Described {
  readonly FunctionName: string;
  readonly Description?: string;
  readonly Environment?: { readonly Variables?: Readonly<Record<string, string>> };
}

/** Endpoint and region of deployed functions. */
export interface Place {
  readonly endpoint: string;
  readonly region: string;
}

export class DeployedFunction {
  readonly #url: string;
  readonly #region: string;
  readonly variables: Readonly<Record<string, string>>;

  private constructor(url: string, region: string, variables: Readonly<Record<string, string>>) {
    this.#url = url;
    this.#region = region;
    this.variables = variables;
  }

  /** Function whose description contains `about`. */
  static async about({ endpoint, region }: Place, about: string): Promise<DeployedFunction> {
    const list = await (await asked(`${endpoint}/2015-03-31/functions/?MaxItems=50`, region, {})).json();
    const found = (list as { Functions: Described[] }).Functions.find((f) => f.Description?.includes(about) === true);
    if (found === undefined) throw new Error(`no function of LocalStack is described as "${about}"`);
    const url = `${endpoint}/2015-03-31/functions/${found.FunctionName}`;
    return new DeployedFunction(url, region, found.Environment?.Variables ?? {});
  }

  /** Invokes it. Throws the error that it failed with. */
  async invoke(event: object): Promise<unknown> {
    const answer = await asked(`${this.#url}/invocations`, this.#region, {
      method: 'POST',
      body: JSON.stringify(event),
    });
    const said = await answer.text();
    if (answer.headers.has('x-amz-function-error')) throw new Error(`a function failed: ${said}`);
    return JSON.parse(said);
  }

  /** Sets its environment, and waits until it is in force. */
  async set(Variables: Readonly<Record<string, string>>): Promise<void> {
    const url = `${this.#url}/configuration`;
    await asked(url, this.#region, { method: 'PUT', body: JSON.stringify({ Environment: { Variables } }) });
    for (;;) {
      const now = (await (await asked(url, this.#region, {})).json()) as { LastUpdateStatus?: string };
      if (now.LastUpdateStatus !== 'InProgress') return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** Signed request, of which LocalStack only reads service and region. */
async function asked(url: string, region: string, init: RequestInit): Promise<Response> {
  const scope = `Credential=test/20260101/${region}/lambda/aws4_request`;
  const headers = { authorization: `AWS4-HMAC-SHA256 ${scope}, SignedHeaders=host, Signature=0` };
  const answer = await fetch(url, { ...init, headers: { ...headers, 'content-type': 'application/json' } });
  if (!answer.ok) throw new Error(`${init.method ?? 'GET'} ${url} answered ${answer.status}: ${await answer.text()}`);
  return answer;
}
