import { RequestError } from "got";
import { isPublicAddress } from "../targets/public-address.ts";
import { readTarget, type TargetRules } from "../targets/target.ts";
import { createAgents } from "./agents.ts";
import { createCheckedLookup, lookupCodes } from "./checked-lookup.ts";
import { startDeadline } from "./deadline.ts";
import { exchange } from "./exchange.ts";
import { failureWords, isTimeOut } from "./failure-words.ts";
import { createPublicResolver, type ResolveName, resolveBySystem } from "./resolve-name.ts";
import { retryAfterMs } from "./retry-after.ts";

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
