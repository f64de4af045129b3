import createClient, { type Client } from "openapi-fetch";
import { type Confirm, sendConfirmed } from "./confirmed.ts";
import { ApiProblem, ConnectionLost } from "./problem.ts";
import type { paths } from "./schema.d.ts";

/** The typed client of Halyard's API, for a key, or for an environment by session. */
export type Api = Client<paths>;

export type ApiEvents = {
  /** The API no longer accepts the caller. */
  onRejected: () => void;
  /** The caller lacks a role. Absent for keys. */
  onForbidden?: () => void;
  /** The sign-in is too old for the request. Absent for keys. */
  confirm?: Confirm;
};

/** Creates a client that sends these headers. */
export function createApi(
  headers: Readonly<Record<string, string>>,
  { onRejected, onForbidden, confirm }: ApiEvents,
): Api {
  const api = createClient<paths>({
    baseUrl: window.location.origin,
    fetch: (request) => sendConfirmed(request, confirm),
  });
  api.use({
    onRequest({ request }) {
      for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
      return request;
    },
    onResponse({ response }) {
      if (response.status === 401) onRejected();
      if (response.status === 403) onForbidden?.();
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
  paths["/api/v1/change-requests/{requestId}"]["get"]["responses"][200]["content"]["application/json"];
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
