import { z } from "zod";
import type { ServiceName } from "../service-names.ts";

/** Credentials that a route accepts. The handler decides what a key may see. */
export type Access =
  | "operator"
  | "operator_or_server_key"
  | "server_key"
  /** A signed-in person. */
  | "session"
  | "operator_or_session"
  | "server_or_reader_key"
  | "any_key"
  | "operator_or_any_key"
  /** Any key, in `Authorization` or in `X-API-Key`. */
  | "any_key_in_either_header"
  /** A token in the URL, because browsers send no headers of the caller with an `EventSource`. */
  | "stream_token";

/**
 * The definition of a route of the public API. The service registers it, the gateway forwards by it, the OpenAPI
 * document contains it, and tests iterate over all of them.
 */
export type RouteContract<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
  A extends Access = Access,
> = {
  operationId: string;
  service: ServiceName;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** An additional method with the same meaning. */
  alsoMethod?: "PUT";
  /** In the form `/api/v1/flags/:id`. */
  path: string;
  access: A;
  tag: string;
  summary: string;
  description: string;
  /** Parameters of the path. A value that does not match has the same response as an unknown resource. */
  params: P;
  query: Q;
  /** Schema of the body. Absent for a route without a body. */
  body?: B;
  /** A valid body, for the OpenAPI document. */
  example?: unknown;
  /** Further valid bodies by name, for kinds of bodies that differ. */
  furtherExamples?: Readonly<Record<string, unknown>>;
  bodyOptional?: boolean;
  /** Content types of a body that the handler reads as a stream, in place of a JSON body, each with an example. */
  streamedBody?: Readonly<Record<string, string>>;
  /** The user's context is read from the `X-User-…` headers. */
  readsUser?: boolean;
  /** `If-Match` is honoured. */
  conditional?: boolean;
  /** `If-None-Match: *` is honoured: a change that would replace something returns 412. */
  unlessPresent?: boolean;
  /** The response has an ETag, although the resource has no version. */
  tagged?: boolean;
  /**
   * `Idempotency-Key` is honoured. By default, another request with the same key is rejected; with `first_counts`, it
   * is accepted and has no effect.
   */
  idempotent?: true | "first_counts";
  /**
   * A change of a protected environment is refused with `APPROVAL_001`, and makes a draft of a change request. With
   * `Prefer: respond-async`, the request is opened, and the response is 202.
   */
  protectable?: true;
  /** Value of `Cache-Control`, if it differs from that of the route's kind. */
  cacheControl?: string;
  /** A successful response contains an API key, so no cache may store it. */
  carriesKey?: boolean;
  /** `If-None-Match` is honoured: a match returns 304 without a body. */
  revalidated?: boolean;
  /** The response is compressed for clients that accept it. */
  compressed?: boolean;
  success: {
    status: 200 | 201 | 202 | 204;
    description: string;
    body?: z.ZodType;
    contentType?: string;
  };
  /** Error codes of this route, in addition to those of every route. */
  errors: readonly string[];
  /** By status: errors whose form another protocol defines. */
  ownErrors?: Readonly<Record<number, OwnError>>;
};

type OwnError = { description: string; body: z.ZodType; example: unknown };

/** Returns whether a route responds with a stream of server-sent events. */
export function isEventStream({ success }: Pick<RouteContract, "success">): boolean {
  return success.contentType === "text/event-stream";
}

type Draft<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  A extends Access,
> = Omit<RouteContract<P, Q, B, A>, "params" | "query" | "errors"> & {
  params?: P;
  query?: Q;
  errors?: readonly string[];
};

const none = z.strictObject({});

/** Defines a route. `params`, `query` and `errors` are empty by default. */
export function defineRoute<
  P extends z.ZodObject = typeof none,
  Q extends z.ZodObject = typeof none,
  B extends z.ZodType = z.ZodUndefined,
  A extends Access = Access,
>(draft: Draft<P, Q, B, A>): RouteContract<P, Q, B, A> {
  return {
    ...draft,
    params: draft.params ?? (none as unknown as P),
    query: draft.query ?? (none as unknown as Q),
    errors: draft.errors ?? [],
  };
}
