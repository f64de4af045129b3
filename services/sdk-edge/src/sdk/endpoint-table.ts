import type { IncomingMessage } from "node:http";
import type { Endpoint } from "./endpoint.ts";

/** An endpoint that a request is for, with what its address says beside the endpoint's path. */
export type FoundEndpoint = { endpoint: Endpoint; query: string; parameter: string };

type ByMethod = Partial<Record<string, Endpoint>>;

/** Finds the endpoint that a request is for: most often by its whole path, in one look-up. */
export function createEndpointTable(
  endpoints: readonly Endpoint[],
): (request: IncomingMessage) => FoundEndpoint | undefined {
  const whole = new Map<string, ByMethod>();
  const beginnings = new Map<string, ByMethod>();
  for (const endpoint of endpoints) {
    const parameterAt = endpoint.path.indexOf("/:");
    const table = parameterAt === -1 ? whole : beginnings;
    const path = parameterAt === -1 ? endpoint.path : endpoint.path.slice(0, parameterAt + 1);
    table.set(path, { ...table.get(path), [endpoint.method]: endpoint });
  }

  return ({ method = "", url = "" }) => {
    const questionMark = url.indexOf("?");
    const path = questionMark === -1 ? url : url.slice(0, questionMark);
    const query = questionMark === -1 ? "" : url.slice(questionMark + 1);
    const endpoint = whole.get(path)?.[method];
    if (endpoint !== undefined) return { endpoint, query, parameter: "" };
    const parameterAt = path.lastIndexOf("/") + 1;
    const beginning = beginnings.get(path.slice(0, parameterAt))?.[method];
    const parameter = beginning === undefined ? undefined : decode(path.slice(parameterAt));
    if (beginning === undefined || parameter === undefined) return undefined;
    return { endpoint: beginning, query, parameter };
  };
}

/** Undefined where nothing stands, or what is no UTF-8: such a path names nothing. */
function decode(part: string): string | undefined {
  if (part === "") return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    // The thrown URIError says no more than that it is not well encoded.
    return undefined;
  }
}
