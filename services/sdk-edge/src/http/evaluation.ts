import type { IncomingHttpHeaders } from "node:http";
import {
  type CompiledFlag,
  type EvaluationContext,
  type Explanation,
  emptyContext,
  evaluateInSteps,
  explain,
  explainInSteps,
  type Outcome,
  type Pass,
} from "@halyard/evaluation";
import { createProblem } from "@halyard/http";
import type { CostlyEvaluations } from "../admission/costly-evaluations.ts";
import type { EnvironmentView, EvaluatedFlags } from "../answers/environment-view.ts";
import type { FlagValues } from "../answers/flag-values.ts";
import type { PreparedFlag } from "../answers/prepared-flag.ts";
import { unmetInSteps, unmetRequirement } from "../answers/unmet-requirement.ts";
import type { ValueForm } from "../answers/value-form.ts";
import { unknownKey } from "./authentication.ts";
import type { SdkExchange } from "./hot-path.ts";

/**
 * Evaluates flags for a request. Large contexts and costly rules are evaluated in time slices, one condition at a time,
 * because the edge serves other organizations on the same thread. The result is the same.
 */
export type Evaluation = {
  /** Evaluates all flags in a form of values. */
  values(subject: Subject, form: ValueForm, use: (values: FlagValues) => void): void;
  /** Evaluates all flags. `use` reads the numbers of the outcomes immediately and does not keep them. */
  all(subject: Subject, use: (evaluated: EvaluatedFlags) => void): void;
  /** Evaluates one flag. */
  one(subject: Subject, flag: CompiledFlag, use: (evaluated: EvaluatedFlag) => void): void;
  /** Evaluates one flag from its settings and explains the outcome. */
  explained(subject: Subject, flag: PreparedFlag, use: (explanation: Explanation) => void): void;
};

type EvaluatedFlag = {
  outcome: Outcome;
  /** Index of the variation of a typed flag. */
  variation: number | undefined;
  /** Key of the required flag that holds the flag back. Undefined if none does. */
  unmet: string | undefined;
};

type Subject = {
  exchange: SdkExchange;
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
    values(subject, form, use) {
      const { context, view } = subject;
      if (isQuick(subject)) use(form.valuesFor(view, context));
      else
        begin(subject, view.evaluateInSteps(context), ({ outcomeCodes, variations }) =>
          use(form.valuesOf(view, outcomeCodes, variations)),
        );
    },
    all(subject, use) {
      const { context, view } = subject;
      if (isQuick(subject)) {
        const outcomeCodes = view.outcomesFor(context);
        const variations = view.variationsFor(context, outcomeCodes);
        use({ outcomeCodes, variations, unmet: view.unmetFor(context, outcomeCodes) });
      } else begin(subject, view.evaluateInSteps(context), use);
    },
    one(subject, flag, use) {
      const { context } = subject;
      if (isQuick(subject)) {
        const outcome = flag.evaluate(context);
        const variation = flag.variationOf?.(context, outcome);
        use({ outcome, variation, unmet: unmetRequirement(flag, context, outcome) });
      } else begin(subject, oneInSteps(flag, context), use);
    },
    explained(subject, { compiled, references }, use) {
      const { context } = subject;
      if (isQuick(subject)) use(explain(compiled, context, references));
      else begin(subject, explainInSteps(compiled, context, references), use);
    },
  };
}

function* oneInSteps(
  flag: CompiledFlag,
  context: EvaluationContext,
): Generator<undefined, EvaluatedFlag> {
  const pass: Pass = new Map();
  const { outcome, variation } = yield* evaluateInSteps(flag, context, pass);
  return { outcome, variation, unmet: yield* unmetInSteps(flag, context, { outcome, pass }) };
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
 * Size above which a context is large: several times an ordinary one. With an id of this length, 10,000 percentages
 * take a few milliseconds.
 */
const largeContextBytes = 1024;

/** Returns whether comparisons with the context of a request may take long. */
export function hasLargeContext({ headers, target }: SdkExchange): boolean {
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

/** Returns the size of a body. A body without a length can have any size. */
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

/** Guards each step, so that an error in a later step ends this response like an error in the first one. */
function* guardedSteps(
  exchange: SdkExchange,
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
