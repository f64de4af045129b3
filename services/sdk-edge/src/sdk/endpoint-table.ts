import type { IncomingMessage } from "node:http";
import type { Endpoint } from "./endpoint.ts";

/** An endpoint with the query string of the request. */
export type FoundEndpoint = { endpoint: Endpoint; query: string };

type ByMethod = Partial<Record<string, Endpoint>>;

/** Finds the endpoint of a request, usually with one look-up of the whole path. */
export function createEndpointTable(
  endpoints: readonly Endpoint[],
): (request: IncomingMessage) => FoundEndpoint | undefined {
  const byPath = new Map<string, ByMethod>();
  const byPrefix = new Map<string, ByMethod>();
  for (const endpoint of endpoints) {
    const parameterAt = endpoint.path.indexOf(":");
    const table = parameterAt === -1 ? byPath : byPrefix;
    const path = parameterAt === -1 ? endpoint.path : endpoint.path.slice(0, parameterAt);
    table.set(path, { ...table.get(path), ...methodsOf(endpoint) });
  }

  return ({ method = "", url = "" }) => {
    const questionMark = url.indexOf("?");
    const path = questionMark === -1 ? url : url.slice(0, questionMark);
    const endpoint = (byPath.get(path) ?? findPrefix(path))?.[method];
    if (endpoint === undefined) return undefined;
    return { endpoint, query: questionMark === -1 ? "" : url.slice(questionMark + 1) };
  };

  function findPrefix(path: string): ByMethod | undefined {
    for (const [prefix, methods] of byPrefix) if (path.startsWith(prefix)) return methods;
    return undefined;
  }
}

/** `HEAD` is answered like `GET`, and Node leaves out the body. A stream has only a body. */
function methodsOf(endpoint: Endpoint): ByMethod {
  const { method, isStream } = endpoint;
  return method === "GET" && isStream !== true
    ? { GET: endpoint, HEAD: endpoint }
    : { [method]: endpoint };
}
