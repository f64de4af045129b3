import { RequestError } from "got";
import type { Logger } from "pino";
import { isPublicAddress, readTarget, type TargetRules } from "../targets/target.ts";
import { createAgents, exchange } from "./exchange.ts";
import { failureWords, isTimeOut } from "./failures.ts";
import {
  createCheckedLookup,
  createPublicResolver,
  lookupCodes,
  type ResolveName,
  resolveBySystem,
} from "./names.ts";

/**
 * Sends requests to customers' targets, none of which is trusted: not to be where it says, not to
 * answer, not to stop answering. An attempt ends after 30 s at the latest, whatever it is at, and has
 * then kept 2 KiB of the answer. It goes to public addresses only, unless the rules lift that: a URL's
 * own address is checked before, those of a name while the connection is made.
 */
export type SendResult =
  | {
      kind: "answered";
      status: number;
      durationMs: number;
      /** The beginning of the answer's body. */
      body: string;
      /** How long the target asks to be left alone, whatever the status. */
      retryAfterMs?: number;
    }
  | {
      kind: "failed";
      /** A few words for people. */
      error: string;
      timedOut: boolean;
      /** The name leads to an address that is not public. For the log: `error` does not reveal that the name exists. */
      addressNotAllowed?: true;
      durationMs: number;
    };

type FailedSend = Extract<SendResult, { kind: "failed" }>;

/** Makes one attempt. Whatever the target does is a result; it throws nothing for it. */
export type Send = (request: {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** Calls the attempt off. */
  signal?: AbortSignal;
}) => Promise<SendResult>;

/** For all of an attempt: look-up, connection, TLS, headers and body. */
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
    async send({ url: text, headers, body, signal: callOff }) {
      const begunAt = performance.now();
      const failed = (error: string, timedOut = false): FailedSend => {
        return { kind: "failed", error, timedOut, durationMs: msSince(begunAt) };
      };
      const { url } = readTarget(text, rules);
      if (url === undefined) return failed(failureWords.notAllowed);
      const deadline = startDeadline(timeoutMs, callOff);
      const connection = { agents, lookup, signal: deadline.signal };
      try {
        const { retryAfter, ...answer } = await exchange({ url, headers, body }, connection);
        const waitMs = retryAfterMs(retryAfter, Date.now());
        const asked = waitMs === undefined ? {} : { retryAfterMs: waitMs };
        return { kind: "answered", ...answer, ...asked, durationMs: msSince(begunAt) };
      } catch (error) {
        if (deadline.isOver()) return failed(failureWords.timeOut(timeoutMs), true);
        if (deadline.signal.aborted) return failed(failureWords.calledOff);
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

/** Ends an attempt after a time, or when its caller calls it off. */
export type Deadline = {
  signal: AbortSignal;
  /** That it was time which ended the attempt. */
  isOver(): boolean;
  /** To be called when the attempt has ended, so that nothing of it stays behind. */
  clear(): void;
};

export function startDeadline(afterMs: number, callOff: AbortSignal | undefined): Deadline {
  const ending = new AbortController();
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = !ending.signal.aborted;
    ending.abort();
  }, afterMs);
  const end = () => ending.abort();
  callOff?.addEventListener("abort", end);
  if (callOff?.aborted) end();
  return {
    signal: ending.signal,
    isOver: () => isOver,
    clear() {
      clearTimeout(timer);
      callOff?.removeEventListener("abort", end);
    },
  };
}

/** How an HTTP date looks that is sent today (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. */
const httpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** How long `Retry-After` asks to wait; undefined when it is absent or says nothing that is understood. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const at = httpDate.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** Logs that a target's name leads to a private address, because the customer's result does not reveal it. */
export function logAddressNotAllowed(result: SendResult, webhookId: string, logger: Logger): void {
  if (result.kind === "failed" && result.addressNotAllowed)
    logger.info(
      { webhook_id: webhookId },
      "the name of a webhook's target leads to an address that is not allowed",
    );
}
