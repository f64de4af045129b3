import createClient, { type Client } from "openapi-fetch";
import { ApiProblem, ConnectionLost } from "./problem.ts";
import type { paths } from "./schema.d.ts";

/** The typed client of Halyard's API, for a key, or for an environment by session. */
export type Api = Client<paths>;

/** Time after which a request without a response counts as lost. The gateway answers within 40 s at the latest. */
const timeoutMs = 45_000;

/**
 * Creates a client that sends these headers. `onRejected` is called when the API no longer accepts the caller.
 */
export function createApi(headers: Readonly<Record<string, string>>, onRejected: () => void): Api {
  const api = createClient<paths>({ baseUrl: window.location.origin });
  api.use({
    onRequest({ request }) {
      for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
      return new Request(request, {
        signal: AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]),
      });
    },
    onResponse({ response }) {
      if (response.status === 401) onRejected();
    },
    onError({ error }) {
      if (error instanceof DOMException && error.name === "AbortError") return error;
      return new ConnectionLost({ cause: error });
    },
  });
  return api;
}

/** A change request in place of the result of a change. Only clients with the header `Prefer` get one. */
type Opened =
  paths["/api/v1/change-requests/{id}"]["get"]["responses"][200]["content"]["application/json"];
type Result<T> = [Exclude<T, Opened>] extends [never] ? T : Exclude<T, Opened>;

type Answered<T> = { data?: T; error?: unknown; response: Response };

/**
 * Returns the body of a successful response. Throws an `ApiProblem` for an error response and `ConnectionLost` without
 * a response, so that TanStack Query keeps either as the error of the query.
 */
export async function unwrap<T>(answered: Promise<Answered<T>>): Promise<Result<T>> {
  const { data, error, response } = await answered;
  if (!response.ok) throw ApiProblem.from(error, response);
  return data as Result<T>;
}
