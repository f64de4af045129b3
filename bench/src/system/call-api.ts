import { nowMs } from "../time.ts";

type ApiRequest = {
  method?: string;
  /** The key, or the operator's token. A request by a session has its headers instead. */
  token?: string;
  headers?: Record<string, string>;
  body?: object | undefined;
  /** Status of a successful response; 200 by default. */
  status?: number;
};

/** Sends a request and parses the response. `answeredMs` is the time of the response's head. */
export async function timedCall(url: string, request: ApiRequest) {
  const { method = "GET", token, headers, body, status = 200 } = request;
  const sentMs = nowMs();
  const response = await fetch(url, {
    method,
    headers: {
      ...{ "content-type": "application/json", ...headers },
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const answeredMs = nowMs();
  const text = await response.text();
  if (response.status !== status) throw new Error(`${method} ${url}: ${response.status} ${text}`);
  return { sentMs, answeredMs, text };
}

export async function callApi<Answer>(url: string, request: ApiRequest): Promise<Answer> {
  return JSON.parse((await timedCall(url, request)).text || "null") as Answer;
}
