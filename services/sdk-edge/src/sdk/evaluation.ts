import type { IncomingHttpHeaders } from "node:http";
import {
  type CompiledFlag,
  type EvaluationContext,
  type Explanation,
  emptyContext,
  evaluateInSteps,
  explain,
  explainInSteps,
  type FlagState,
  type Outcome,
} from "@halyard/evaluation";
import { createProblem } from "@halyard/service";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { outcomesInSteps } from "../environment/outcomes-in-steps.ts";
import { unknownKey } from "../http/authentication.ts";
import type { Exchange } from "../http/exchange.ts";
import type { CostlyEvaluations } from "./costly-evaluations.ts";

/**
 * Evaluates flags for a request. A large context or costly rules are evaluated in time slices, condition by
 * condition, because the edge serves other customers on the same thread. The result is the same.
 */
export type Evaluation = {
  /** The number of each flag's outcome, which `use` reads at once and does not keep. */
  all(subject: Subject, use: (outcomeNumbers: Uint8Array) => void): void;
  one(subject: Subject, flag: CompiledFlag, use: (outcome: Outcome) => void): void;
  /** One flag's outcome with the way to it, from the flag as it is set. */
  explained(subject: Subject, flag: FlagState, use: (explanation: Explanation) => void): void;
};

export type Subject = {
  exchange: Exchange;
  context: EvaluationContext;
  view: EnvironmentView;
};

export function createEvaluation({
  costlyEvaluations,
  isKeyLive,
  now,
}: {
  costlyEvaluations: CostlyEvaluations;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  now: () => number;
}): Evaluation {
  function begin<T>(
    { exchange }: Subject,
    work: Generator<undefined, T>,
    use: (result: T) => void,
  ): void {
    const { response, key } = exchange;
    if (response.destroyed) return;
    // The key can be revoked or expire while the evaluation waits and runs.
    const useIfLive = (result: T) =>
      isKeyLive(key.id, now()) ? use(result) : exchange.reject(unknownKey);
    const drop = costlyEvaluations.add(key.organizationId, {
      steps: guardedSteps(exchange, finish(work, useIfLive)),
      reject: () => exchange.guarded(() => exchange.reject(tooMany)),
    });
    response.once("close", drop);
  }

  return {
    all(subject, use) {
      const { context, view } = subject;
      if (isQuick(subject)) use(view.outcomesFor(context));
      else begin(subject, outcomesInSteps(view, context), use);
    },
    one(subject, flag, use) {
      const { context } = subject;
      if (isQuick(subject)) use(flag.evaluate(context));
      else begin(subject, evaluateInSteps(flag, context), use);
    },
    explained(subject, flag, use) {
      const { context } = subject;
      if (isQuick(subject)) use(explain(flag, context));
      else begin(subject, explainInSteps(flag, context), use);
    },
  };
}

const tooMany = createProblem(
  "SERVER_002",
  "Too many costly evaluations are waiting; retry after 1 s.",
);

function isQuick({ exchange, context, view }: Subject): boolean {
  if (context === emptyContext) return true;
  return !view.isCostly && !hasLargeContext(exchange);
}

/**
 * Several times the size of an ordinary context. An id of this length and 10,000 percentages take a few milliseconds.
 */
const largeContextBytes = 1024;

/** Returns whether comparisons with the context of a request may take long. */
export function hasLargeContext({ headers, target }: Exchange): boolean {
  const inHeaders =
    lengthOf(headers["x-user-context"]) +
    lengthOf(headers["x-user-id"]) +
    lengthOf(headers["x-user-email"]) +
    lengthOf(headers["x-user-attributes"]);
  return target.length + inHeaders + bodyBytes(headers) > largeContextBytes;
}

function lengthOf(header: string | string[] | undefined): number {
  return header === undefined ? 0 : header.length;
}

/** A body without a length can have any. */
function bodyBytes(headers: IncomingHttpHeaders): number {
  const length = headers["content-length"];
  if (length !== undefined) return Number(length);
  return headers["transfer-encoding"] === undefined ? 0 : Number.POSITIVE_INFINITY;
}

function* finish<T>(
  work: Generator<undefined, T>,
  use: (result: T) => void,
): Generator<undefined, void> {
  use(yield* work);
}

/** A fault in a later step ends this one answer, as one in the first would. */
function* guardedSteps(
  exchange: Exchange,
  work: Generator<undefined, void>,
): Generator<undefined, void> {
  for (let isDone = false; !isDone; ) {
    isDone = true;
    exchange.guarded(() => {
      isDone = work.next().done === true;
    });
    if (!isDone) yield;
  }
}
