import { nowMs } from "../time.ts";

type ApiRequest = {
  method?: string;
  token: string;
  body?: object | undefined;
  /** Status of a successful response; 200 by default. */
  status?: number;
};

/** Sends a request and parses the response. `answeredMs` is the time of the response's head. */
export async function timedCall(url: string, request: ApiRequest) {
  const { method = "GET", token, body, status = 200 } = request;
  const sentMs = nowMs();
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
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
