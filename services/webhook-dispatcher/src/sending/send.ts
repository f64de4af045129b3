import { RequestError } from "got";
import type { Logger } from "pino";
import { isPublicAddress, readTarget, type TargetRules } from "../targets/target.ts";
import { failureWords, isTimeOut } from "./failures.ts";
import {
  createCheckedLookup,
  createPublicResolver,
  lookupCodes,
  type ResolveName,
  resolveBySystem,
} from "./names.ts";
import { createAgents, post } from "./post.ts";

/**
 * The result of a request to a customer's target. Targets are not trusted: a name may resolve to a private address, and
 * a target may never respond or never stop responding. Therefore an attempt ends after 30 s, stores 2 KiB of the
 * response, and connects to public addresses only, unless the rules allow private ones. An address in the URL is
 * checked before the connection, the addresses of a name during the lookup.
 */
export type SendResult =
  | {
      kind: "answered";
      status: number;
      durationMs: number;
      /** The beginning of the response body. */
      body: string;
      /** The delay in `Retry-After`, with any status. */
      retryAfterMs?: number;
    }
  | {
      kind: "failed";
      /** A short description that customers see. */
      error: string;
      timedOut: boolean;
      /** The name resolves to a private address. For the log only: `error` does not reveal that the name exists. */
      addressNotAllowed?: true;
      durationMs: number;
    };

type FailedSend = Extract<SendResult, { kind: "failed" }>;

/** Makes one attempt. Returns a result for everything that a target can do, and does not throw for it. */
export type Send = (request: {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** Cancels the attempt. */
  signal?: AbortSignal;
}) => Promise<SendResult>;

/** Time limit of an attempt: lookup, connection, TLS, headers and body together. */
const attemptTimeoutMs = 30_000;

export function createSend(options: {
  rules: TargetRules;
  timeoutMs?: number;
  resolve?: ResolveName;
}): { send: Send; close(): Promise<void> } {
  const { rules, timeoutMs = attemptTimeoutMs } = options;
  const names = createPublicResolver();
  const agents = createAgents();
  const lookup = createCheckedLookup({
    resolve: options.resolve ?? (rules.allowPrivate ? resolveBySystem : names.resolve),
    isAllowed: (address) => rules.allowPrivate || isPublicAddress(address),
  });

  return {
    async send({ url: text, headers, body, signal: cancel }) {
      const begunAt = performance.now();
      const failed = (error: string, timedOut = false): FailedSend => {
        return { kind: "failed", error, timedOut, durationMs: msSince(begunAt) };
      };
      const { url } = readTarget(text, rules);
      if (url === undefined) return failed(failureWords.notAllowed);
      const deadline = startDeadline(timeoutMs, cancel);
      const connection = { agents, lookup, signal: deadline.signal };
      try {
        const { retryAfter, ...answer } = await post({ url, headers, body }, connection);
        const waitMs = retryAfterMs(retryAfter, Date.now());
        const asked = waitMs === undefined ? {} : { retryAfterMs: waitMs };
        return { kind: "answered", ...answer, ...asked, durationMs: msSince(begunAt) };
      } catch (error) {
        if (deadline.isOver()) return failed(failureWords.timeOut(timeoutMs), true);
        if (deadline.signal.aborted) return failed(failureWords.cancelled);
        if (!(error instanceof RequestError)) throw error;
        const result = failed(failureWords.ofCode(error.code), isTimeOut(error.code));
        return error.code === lookupCodes.notAllowed
          ? { ...result, addressNotAllowed: true }
          : result;
      } finally {
        deadline.clear();
      }
    },
    async close() {
      names.close();
      agents.destroy();
    },
  };
}

const msSince = (begunAt: number): number => Math.round(performance.now() - begunAt);

/** Ends an attempt after its time limit, or when the caller cancels it. */
type Deadline = {
  signal: AbortSignal;
  /** Returns whether the time limit ended the attempt. */
  isOver(): boolean;
  /** Releases the timer and the listener. Call it at the end of the attempt. */
  clear(): void;
};

function startDeadline(afterMs: number, cancel: AbortSignal | undefined): Deadline {
  const ending = new AbortController();
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = !ending.signal.aborted;
    ending.abort();
  }, afterMs);
  const end = () => ending.abort();
  cancel?.addEventListener("abort", end);
  if (cancel?.aborted) end();
  return {
    signal: ending.signal,
    isOver: () => isOver,
    clear() {
      clearTimeout(timer);
      cancel?.removeEventListener("abort", end);
    },
  };
}

/** The preferred format of an HTTP date (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Returns the delay in `Retry-After`; undefined if the header is absent or invalid. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const at = httpDate.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** Logs that a target's name resolves to a private address, because the customer's result does not reveal it. */
export function logAddressNotAllowed(result: SendResult, webhookId: string, logger: Logger): void {
  if (result.kind === "failed" && result.addressNotAllowed)
    logger.info(
      { webhook_id: webhookId },
      "the name of a webhook's target resolves to a private address",
    );
}
