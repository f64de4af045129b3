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
import { type Refusal, refuse } from "@halyard/service";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { outcomesInSteps } from "../environment/outcomes-in-steps.ts";
import { isLargeContext } from "./context-bytes.ts";
import type { Exchange } from "./endpoint.ts";
import type { PatientWork } from "./patient-work.ts";

/**
 * Evaluates for a request: at once, or in slices where it may take long. Rules come from one customer and
 * contexts from anybody, and both may be as large as they are allowed to be; the edge is everybody's. So
 * a large context, or rules that cost much, are evaluated condition by condition between the requests of
 * others. What comes out is the same.
 */
export type Evaluation = {
  /** The number of each flag's outcome, which `use` reads at once and does not keep. */
  all(subject: Subject, use: (outcomeNumbers: Uint8Array) => void): void;
  one(subject: Subject, flag: CompiledFlag, use: (outcome: Outcome) => void): void;
  /** One flag's outcome with the way to it, from the flag as it is set. */
  explained(subject: Subject, flag: FlagState, use: (explanation: Explanation) => void): void;
};

/** Who asks about which flags, and how to say that it is too much at present. */
export type Subject = {
  exchange: Exchange;
  context: EvaluationContext;
  view: EnvironmentView;
  refuse: (refusal: Refusal) => void;
};

export function createEvaluation(patient: PatientWork): Evaluation {
  function begin(subject: Subject, work: Generator<undefined, void>): void {
    const { response, guarded } = subject.exchange;
    const isBegun = patient.begin(guardedSteps(guarded, work), () => !response.destroyed);
    if (!isBegun) subject.refuse(tooMuch);
  }

  return {
    all(subject, use) {
      const { context, view } = subject;
      if (isQuick(subject)) use(view.outcomesFor(context));
      else begin(subject, finish(outcomesInSteps(view, context), use));
    },
    one(subject, flag, use) {
      const { context } = subject;
      if (isQuick(subject)) use(flag.evaluate(context));
      else begin(subject, finish(evaluateInSteps(flag, context), use));
    },
    explained(subject, flag, use) {
      const { context } = subject;
      if (isQuick(subject)) use(explain(flag, context));
      else begin(subject, finish(explainInSteps(flag, context), use));
    },
  };
}

const tooMuch = refuse("SERVER_002", "Too many large requests at once; try again");

function isQuick({ exchange: { request, query }, context, view }: Subject): boolean {
  if (context === emptyContext) return true;
  return !view.isCostly && !isLargeContext(request, query);
}

function* finish<T>(
  work: Generator<undefined, T>,
  use: (result: T) => void,
): Generator<undefined, void> {
  use(yield* work);
}

/** A fault in a later step ends this one answer, as one in the first would. */
function* guardedSteps(
  guarded: Exchange["guarded"],
  work: Generator<undefined, void>,
): Generator<undefined, void> {
  for (let isDone = false; !isDone; ) {
    isDone = true;
    guarded(() => {
      isDone = work.next().done === true;
    });
    if (!isDone) yield;
  }
}
