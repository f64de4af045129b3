import type { IncomingMessage, ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import type { UsageEndpoint } from "@halyard/contracts";
import { type Refusal, writeRefusal } from "@halyard/service";
import { nameFurtherLimits } from "../limits/name-further-limits.ts";
import { commonHeaders } from "./common-headers.ts";

/**
 * What SDKs may ask for. An endpoint is answered straight on `node:http`, without the framework: that
 * takes a fraction of the time, and an open stream holds on to none of the framework's objects. What
 * all endpoints have in common, who may ask and whether the body can be read, is settled by the front
 * before an endpoint's `respond` is called.
 */
export type Endpoint = {
  readonly method: "GET" | "POST";
  /** As in the contract. A path may end in one parameter, which can contain slashes: `/ofrep/v1/evaluate/flags/:key`. */
  readonly path: string;
  /** Names the endpoint in metrics and in what is counted. */
  readonly name: UsageEndpoint;
  /**
   * Whether the endpoint counts its requests itself, when it knows that they are not refused by a limit
   * of its own. The others' are counted by the front, as soon as it has admitted them.
   */
  readonly countsItself?: true;
  /** The answer has no end. A body of the request is ignored. */
  readonly isStream?: true;
  /** Says who is asking; there is a snapshot to look the key up in. */
  readonly authenticate: (asked: Asked) => DirectoryKey | Refusal;
  readonly respond: (exchange: Exchange) => void;
};

/** A request that may yet be refused. */
export type Asked = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The request's id. */
  readonly id: string;
  /** The query string as it came, without the question mark. */
  readonly query: string;
  /** When it came. The clock is read once for each request. */
  readonly nowMs: number;
  /** How much of its limits the caller has left: header names and values. None until its key is known. */
  readonly rateLimit: readonly string[];
};

/** A request whose key works and whose body, if it has one, is JSON. */
export type Exchange = Asked & {
  readonly key: DirectoryKey;
  readonly body: unknown;
  /** Does what belongs to the answer but comes later, so that a fault in it ends this answer alone. */
  readonly guarded: (work: () => void) => void;
};

/** Answers with JSON that is ready. */
export function answerJson(
  { response, id, rateLimit }: Asked,
  status: number,
  answer: { body: string; headers: readonly string[] },
): void {
  response.writeHead(status, [
    "X-Request-Id",
    id,
    "Content-Type",
    "application/json; charset=utf-8",
    "Content-Length",
    String(Buffer.byteLength(answer.body)),
    ...answer.headers,
    ...commonHeaders,
    ...rateLimit,
  ]);
  response.end(answer.body);
}

/** Sends an error that pages of any origin may read. */
export function answerRefusal({ response, id, rateLimit }: Asked, refusal: Refusal): void {
  const named = { "X-Request-Id": id, ...commonHeadersByName };
  // What is refused by a limit says itself which one that is; the caller's others stand beside it.
  if (refusal.refused === "RATE_001")
    writeRefusal(response, nameFurtherLimits(refusal, rateLimit), named);
  else writeRefusal(response, refusal, { ...named, ...byName(rateLimit) });
}

function byName(headers: readonly string[]): Record<string, string> {
  const named: Record<string, string> = {};
  for (let at = 0; at < headers.length; at += 2)
    named[headers[at] as string] = headers[at + 1] as string;
  return named;
}

const commonHeadersByName = byName(commonHeaders);
