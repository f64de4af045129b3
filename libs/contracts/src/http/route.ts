import { z } from "zod";

/**
 * A route of the public API, told once: the service registers it, the gateway sends it there, the
 * OpenAPI document shows it, and tests walk over it.
 */
export type ServiceName =
  | "management"
  | "sdk-edge"
  | "scheduler"
  | "webhook-dispatcher"
  | "usage-metering";

/** Who may call a route. What a key may see beyond that is decided by the handler. */
export type Access =
  | "operator"
  | "operator_or_server_key"
  | "server_key"
  | "any_key"
  /** The same, in `Authorization` or in `X-API-Key`. */
  | "any_key_in_either_header"
  /** A token in the address, for browsers' event streams. */
  | "stream_token";

export type RouteContract<
  P extends z.ZodObject = z.ZodObject,
  Q extends z.ZodObject = z.ZodObject,
  B extends z.ZodType = z.ZodType,
  A extends Access = Access,
> = {
  operationId: string;
  service: ServiceName;
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Another method with the same meaning (`PUT` beside `PATCH`). */
  alsoMethod?: "PUT";
  /** In the form `/api/v1/flags/:id`. */
  path: string;
  access: A;
  tag: string;
  summary: string;
  description?: string;
  /** All are strings in the path; one that does not fit is answered like an unknown resource. */
  params: P;
  query: Q;
  /** Absent: the route takes no body. */
  body?: B;
  /** A body that works when it is sent, for the OpenAPI document. */
  example?: unknown;
  /** A body that may be left out altogether. */
  bodyOptional?: boolean;
  /** The user's context is read from the `X-User-…` headers. */
  readsUser?: boolean;
  /** `If-Match` is honoured. */
  conditional?: boolean;
  /** `Idempotency-Key` is honoured. */
  idempotent?: boolean;
  /** The value of `Cache-Control`, where it is not the one of the route's kind. */
  cacheControl?: string;
  /** A successful answer contains an API key, so that no cache may store it. */
  carriesKey?: boolean;
  /** `If-None-Match` is honoured: who has the present answer gets 304 without a body. */
  revalidated?: boolean;
  success: {
    status: 200 | 201 | 202 | 204;
    description: string;
    body?: z.ZodType;
    contentType?: string;
  };
  /** Error codes that the route answers beside those that every route can. */
  errors: readonly string[];
  /** By status: errors that do not have the one shape, where a protocol of others says so. */
  ownErrors?: Readonly<Record<number, OwnError>>;
};

export type OwnError = { description: string; body: z.ZodType; example: unknown };

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

/** Completes a route's description: without `params`, `query` or `errors` it has none. */
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
