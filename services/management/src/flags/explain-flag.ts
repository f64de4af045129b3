import { setImmediate as nextTurn } from "node:timers/promises";
import type { ExplainFlag, FlagExplanation } from "@halyard/contracts";
import {
  type Attributes,
  bucketOf,
  createContext,
  type EvaluationContext,
  type Explanation,
  explainInSteps,
  type ResolvedState,
  readAttributes,
} from "@halyard/evaluation";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import { changedContent, type FlagInEnvironment } from "./flag.ts";
import type { WithCheckedRules } from "./targeting-rules.ts";

/** Evaluates a flag for a user, with changed settings if given, and returns how each rule contributed. */
export async function explainFlag(
  { flag, state }: FlagInEnvironment,
  request: {
    user: ExplainFlag["user"];
    changed: WithCheckedRules<NonNullable<ExplainFlag["state"]>>;
    /** Called with the time of the event loop that the evaluation has taken. */
    onUsed: (ms: number) => void;
  },
): Promise<FlagExplanation | Problem> {
  const { changed, onUsed } = request;
  const attributes = readUser(request.user ?? {});
  if (isProblem(attributes)) return attributes;
  const evaluated = { key: flag.key, ...changedContent(state.content, changed) };
  const context = createContext(attributes);
  const { rules, ...outcome } = await explainInTurns(evaluated, context, onUsed);
  const { enabled, rollout_percentage } = evaluated;
  const split = outcome.reason === "split" ? { split: splitOf(evaluated, rules, attributes) } : {};
  return { ...outcome, trace: { enabled, rollout_percentage, rules, ...split } };
}

const attributesAreInvalid = createProblem(
  "VALIDATION_001",
  "/user has an attribute that is not a string, a number, true, false, or an array of these",
);

/**
 * Reads a user as the edge does: `id` wins over `attributes`, and these win over the other members. The message does not
 * name the attribute, because names can be as private as values.
 */
function readUser(user: NonNullable<ExplainFlag["user"]>): Attributes | Problem {
  const { attributes, ...members } = user;
  const outer = readAttributes(members, "reject");
  const inner = readAttributes(attributes ?? {}, "reject");
  if (!outer.ok || !inner.ok) return attributesAreInvalid;
  const ownId = readAttributes({ id: members.id }, "reject");
  const merged = new Map([...outer.attributes, ...inner.attributes]);
  const given = ownId.ok ? ownId.attributes.get("id") : undefined;
  return given === undefined ? merged : merged.set("id", given);
}

/** Time after which an explanation lets other requests run. Rules of the maximum size can take seconds. */
const sliceMs = 10;

async function explainInTurns(
  state: ResolvedState,
  context: EvaluationContext,
  onUsed: (ms: number) => void,
): Promise<Explanation> {
  const steps = explainInSteps(state, context);
  for (let beganMs = performance.now(); ; ) {
    const step = steps.next();
    const usedMs = performance.now() - beganMs;
    if (step.done !== true && usedMs < sliceMs) continue;
    onUsed(usedMs);
    if (step.done === true) return step.value;
    await nextTurn();
    beganMs = performance.now();
  }
}

/** Returns the percentage that decided, and the user's bucket. */
function splitOf(
  state: ResolvedState,
  rules: Explanation["rules"],
  attributes: Attributes,
): NonNullable<FlagExplanation["trace"]["split"]> {
  const index = rules.findIndex(({ matched }) => matched);
  const unit = attributes.get(state.bucket_by ?? "id");
  const isUnit = (typeof unit === "string" && unit !== "") || typeof unit === "number";
  return {
    percentage: state.targeting_rules[index]?.rollout_percentage ?? state.rollout_percentage,
    bucket: isUnit ? bucketOf(state.bucket_seed ?? state.key, String(unit)) : null,
  };
}
