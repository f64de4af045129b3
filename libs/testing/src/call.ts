/** An HTTP request of a test. */
export type CallOptions = {
  method?: string;
  /** Sent as a bearer token. */
  key?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, in place of a body. */
  text?: string;
  headers?: Record<string, string>;
};

export type Called = {
  status: number;
  headers: Headers;
  /** The JSON in the response; undefined for a response without a body. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape.
  body: any;
};

export async function call(url: string, options: CallOptions = {}): Promise<Called> {
  const headers = new Headers(options.headers);
  if (options.key !== undefined) headers.set("authorization", `Bearer ${options.key}`);
  if (options.body !== undefined) headers.set("content-type", "application/json");
  const response = await fetch(url, {
    method: options.method ?? "GET",
    headers,
    ...(options.text === undefined ? {} : { body: options.text }),
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}
