/** A function of a deployment on LocalStack that fails for a while: what puts messages into dead letters. */
export class BrokenFunction {
  readonly #url: string;
  readonly #region: string;
  readonly #before: Readonly<Record<string, string>>;

  private constructor(url: string, region: string, before: Readonly<Record<string, string>>) {
    this.#url = url;
    this.#region = region;
    this.#before = before;
  }

  /** Breaks the function whose description has `about`, by what its environment says instead. */
  static async begin(
    at: { readonly endpoint: string; readonly region: string },
    about: string,
    instead: Readonly<Record<string, string>>,
  ): Promise<BrokenFunction> {
    const list = await asked(`${at.endpoint}/2015-03-31/functions/?MaxItems=50`, at.region, {});
    const found = (list as { Functions: Described[] }).Functions.find((f) => f.Description?.includes(about) === true);
    if (found === undefined) throw new Error(`no function of LocalStack is described as "${about}"`);
    const url = `${at.endpoint}/2015-03-31/functions/${found.FunctionName}/configuration`;
    const broken = new BrokenFunction(url, at.region, found.Environment?.Variables ?? {});
    await broken.#set({ ...broken.#before, ...instead });
    return broken;
  }

  async mend(): Promise<void> {
    await this.#set(this.#before);
  }

  async #set(Variables: Readonly<Record<string, string>>): Promise<void> {
    const body = JSON.stringify({ Environment: { Variables } });
    await asked(this.#url, this.#region, { method: 'PUT', body });
    for (;;) {
      const { LastUpdateStatus } = (await asked(this.#url, this.#region, {})) as { LastUpdateStatus?: string };
      if (LastUpdateStatus !== 'InProgress') return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

interface Described {
  readonly FunctionName: string;
  readonly Description?: string;
  readonly Environment?: { readonly Variables?: Record<string, string> };
}

/** LocalStack reads the service and the region from the signature, and checks none. */
async function asked(url: string, region: string, init: RequestInit): Promise<unknown> {
  const scope = `Credential=test/20260101/${region}/lambda/aws4_request`;
  const headers = { authorization: `AWS4-HMAC-SHA256 ${scope}, SignedHeaders=host, Signature=0` };
  const answer = await fetch(url, { ...init, headers: { ...headers, 'content-type': 'application/json' } });
  if (!answer.ok) throw new Error(`${init.method ?? 'GET'} ${url} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}
