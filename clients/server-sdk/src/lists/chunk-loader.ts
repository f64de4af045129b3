import { describeFailure } from "../connection/describe-failure.ts";
import { HalyardError } from "../halyard-error.ts";
import type { Settings } from "../options.ts";
import type { Platform } from "../platform.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import { type ChunkResult, fetchChunk } from "./fetch-chunk.ts";

export type ChunkLoaderOptions = {
  settings: Pick<Settings, "baseUrl" | "serverKey">;
  platform: Platform;
  ruleSet: RuleSet;
  /** A chunk arrived, and these flags changed with it. */
  onChange: (keys: readonly string[]) => void;
  onError: (error: HalyardError) => void;
};

/** A first 404 does not count as an attempt. */
type Failed = { attempts: number; retryAtMs: number };

/** Maximum number of requests at the same time. */
const maxRequests = 4;
const firstRetryMs = 1_000;
const maxRetryMs = 30_000;
/**
 * Delay after the first 404. Behind a load balancer, the request can reach an edge that receives the chunk some
 * milliseconds later than the edge of the stream.
 */
const notFoundRetryMs = 50;

/** Requests the chunks that the rule set lacks, and retries each of them with exponential backoff. */
export class ChunkLoader {
  readonly #options: ChunkLoaderOptions;
  readonly #requests = new Map<string, AbortController>();
  readonly #failed = new Map<string, Failed>();
  /** Earliest time of any request, by `Retry-After`. */
  #notBeforeMs = 0;
  #cancelRetry: (() => void) | undefined = undefined;
  #stopped = false;

  constructor(options: ChunkLoaderOptions) {
    this.#options = options;
  }

  /** Requests what the rule set lacks now. */
  update(): void {
    if (this.#stopped) return;
    this.#cancelRetry?.();
    const { platform, ruleSet } = this.#options;
    const missing = new Set(ruleSet.lists.missing);
    for (const sha256 of this.#failed.keys()) if (!missing.has(sha256)) this.#failed.delete(sha256);
    for (const [sha256, attempt] of this.#requests)
      if (!missing.has(sha256)) this.#end(sha256, attempt);
    const nowMs = platform.clock.monotonicMs();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const sha256 of missing) {
      if (this.#requests.has(sha256)) continue;
      const dueMs = Math.max(this.#failed.get(sha256)?.retryAtMs ?? nowMs, this.#notBeforeMs);
      if (dueMs > nowMs) nextMs = Math.min(nextMs, dueMs);
      else if (this.#requests.size < maxRequests) void this.#load(sha256);
    }
    if (nextMs < Number.POSITIVE_INFINITY)
      this.#cancelRetry = platform.clock.after(nextMs - nowMs, () => this.update());
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRetry?.();
    for (const [sha256, attempt] of this.#requests) this.#end(sha256, attempt);
  }

  /** Aborts a request, so that the next one need not wait for it. */
  #end(sha256: string, attempt: AbortController): void {
    this.#requests.delete(sha256);
    attempt.abort({ kind: "ended_by_client" });
  }

  async #load(sha256: string): Promise<void> {
    const { settings, platform, ruleSet, onChange, onError } = this.#options;
    const attempt = new AbortController();
    this.#requests.set(sha256, attempt);
    const result = await fetchChunk({ sha256, settings, platform, attempt });
    // The request was ended, and another one may have replaced it.
    if (this.#requests.get(sha256) !== attempt) return;
    this.#requests.delete(sha256);
    // The service keeps the chunks of an earlier version only for a while.
    if (result.kind !== "chunk") ruleSet.skipChunk(sha256);
    if (result.kind === "chunk") onChange(ruleSet.addChunks(new Map([[sha256, result.bytes]])));
    else if (isNotFound(result) && !this.#failed.has(sha256)) this.#retrySoon(sha256);
    else {
      this.#delay(sha256, result);
      const error = describe(result, settings.baseUrl);
      if (error !== undefined) onError(error);
    }
    this.update();
  }

  #retrySoon(sha256: string): void {
    const { clock, random } = this.#options.platform;
    const retryAtMs = clock.monotonicMs() + notFoundRetryMs * (1 + random());
    this.#failed.set(sha256, { attempts: 0, retryAtMs });
  }

  #delay(sha256: string, result: ChunkResult): void {
    const { clock, random } = this.#options.platform;
    // Lengthened at random, so that clients do not return in the same instant.
    const timeAfter = (ms: number) => clock.monotonicMs() + ms * (1 + random() / 2);
    const attempts = (this.#failed.get(sha256)?.attempts ?? 0) + 1;
    const backoffMs = Math.min(maxRetryMs, firstRetryMs * 2 ** (attempts - 1));
    this.#failed.set(sha256, { attempts, retryAtMs: timeAfter(backoffMs) });
    if (result.kind === "rejected" && result.retryAfterMs !== undefined)
      this.#notBeforeMs = Math.max(this.#notBeforeMs, timeAfter(result.retryAfterMs));
  }
}

function isNotFound(result: ChunkResult): boolean {
  return result.kind === "rejected" && result.status === 404 && result.retryAfterMs === undefined;
}

function describe(
  result: Exclude<ChunkResult, { kind: "chunk" }>,
  baseUrl: string,
): HalyardError | undefined {
  if (result.kind === "damaged")
    return new HalyardError(
      "list",
      "A part of a list is not the one that the rule set names. The client retries.",
    );
  // The connection reports a rejected key, and stops.
  if (result.kind === "rejected")
    return new HalyardError(
      "list",
      `A part of a list was rejected with status ${result.status}. The client retries.`,
    );
  return describeFailure(result, baseUrl);
}
