import type { Platform } from "../platform.ts";
import { parseRules, type Rules } from "../rules/parse-rules.ts";
import { boundedRequest, type NoResponse } from "./bounded-request.ts";
import { type Rejection, rejectionOf } from "./rejection.ts";

export type PollResult =
  | Rejection
  | NoResponse
  | { kind: "rules"; rules: Rules; etag: string | undefined }
  /** The service has the flags that the client sent the tag of. */
  | { kind: "unchanged" }
  | { kind: "invalid_data"; problem: string };

type PollRequest = {
  url: string;
  headers: Record<string, string>;
  /** The tag of the flags in memory. */
  etag: string | undefined;
  platform: Platform;
  /** Aborted to end the request. */
  attempt: AbortController;
};

/** Requests all flags. Never rejects. */
export async function fetchRules(request: PollRequest): Promise<PollResult> {
  const { attempt, platform } = request;
  return boundedRequest({ clock: platform.clock, attempt }, () => fetchOnce(request));
}

async function fetchOnce({
  url,
  headers,
  etag,
  platform,
  attempt,
}: PollRequest): Promise<PollResult> {
  const response = await platform.fetch(url, {
    headers: etag === undefined ? headers : { ...headers, "if-none-match": etag },
    signal: attempt.signal,
    redirect: "manual",
  });
  if (response.status === 304 && etag !== undefined) return { kind: "unchanged" };
  if (response.status !== 200) return rejectionOf(response, platform.clock.wallMs());
  const parsed = parseRules(await response.text());
  if (!parsed.ok) return { kind: "invalid_data", problem: parsed.problem };
  return { kind: "rules", rules: parsed.value, etag: strongTag(response.headers.get("etag")) };
}

/** Returns the tag as the service sent it. Proxies that compress a response mark its tag as weak. */
function strongTag(etag: string | null): string | undefined {
  return etag === null || etag === "" ? undefined : etag.replace(/^W\//, "");
}
