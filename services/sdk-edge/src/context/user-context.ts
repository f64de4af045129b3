import type { IncomingHttpHeaders } from "node:http";
import { sdkGetFlags } from "@halyard/contracts";
import { createContext, type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { compileInputChecks, isProblem, type Problem } from "@halyard/http";
import { type AttributeMap, addIfMissing, addMissing } from "./attributes.ts";
import { readBodyAttributes } from "./body-attributes.ts";
import { readUserHeaders } from "./headers.ts";

/** The parts of a request that can contain attributes of its user. */
export type ContextSources = {
  headers: IncomingHttpHeaders;
  /** The query as the router parsed it. */
  query: Readonly<Record<string, unknown>>;
  /** The request target, to check the encoding of the query. */
  target: string;
  /** The parsed JSON body of a POST; undefined when there is none. */
  body: unknown;
};

/**
 * Returns the context of a request: the attributes of the body, the headers and the query, in this order of precedence.
 * Sources are merged by attribute, so that a proxy can add an attribute to those of its client. Every source must be
 * valid, even if another one overrides it. Returns `emptyContext` itself if there are no attributes.
 */
export function readUserContext(sources: ContextSources): EvaluationContext | Problem {
  const fromBody = sources.body === undefined ? undefined : readBodyAttributes(sources.body);
  if (fromBody !== undefined && isProblem(fromBody)) return fromBody;
  const fromHeaders = readUserHeaders(sources.headers);
  if (fromHeaders !== undefined && isProblem(fromHeaders)) return fromHeaders;
  const userId = readUserId(sources);
  if (typeof userId !== "string") return userId;

  let attributes: AttributeMap | undefined = fromBody;
  if (fromHeaders !== undefined) attributes = addMissing(attributes, fromHeaders);
  if (userId !== "") attributes = addIfMissing(attributes, "id", userId);
  return attributes === undefined || attributes.size === 0
    ? emptyContext
    : createContext(attributes);
}

/** The checks of the query. All SDK routes have the same parameter. */
const checks = compileInputChecks(sdkGetFlags);

function readUserId({ query, target }: ContextSources): string | Problem {
  // Most requests have no query (`npm run bench -- flags`).
  if (!target.includes("?")) return "";
  const checked = checks.query(query, target);
  return isProblem(checked) ? checked : (checked.value.user_id ?? "");
}
