import type { CompiledCondition } from "./compile-condition.ts";
import type { CompiledFlag, Plan } from "./compile-flag.ts";
import { compileRollouts, type PositionedRollout } from "./compile-rollouts.ts";
import type { EvaluationContext } from "./context.ts";
import { numberOfOutcome, type Outcome, outcomes } from "./outcome.ts";
import type { Rollout } from "./rollout.ts";

/**
 * Evaluates many flags for one user, with the same results as flag by flag in 0.75 of the time (bench `targeting`, the
 * rows of 100 and 1,000 flags). Conditions that several flags have in common, such as a country or a plan, are
 * evaluated once, and flags are one list of numbers instead of thousands of functions.
 *
 * The list contains for each flag with rules: its place among all flags, where the next one begins, its rules, and
 * the result if no rule matches. A rule is where the next one begins, its result, and the numbers of its
 * conditions. A result is the number of an outcome or, below zero, of a rollout. A condition is evaluated
 * when the first rule needs it.
 */
export type EvaluateAll = (
  context: EvaluationContext,
  /** Gets the number of each flag's outcome, in the order of the flags. */
  outcomeNumbers: Uint8Array,
) => void;

export function compileAll(flags: readonly CompiledFlag[]): EvaluateAll {
  const { constants, program, conditions, rollouts, evaluateRollouts } = assemble(flags);
  const answers = new Uint8Array(conditions.length);

  function holds(condition: number, context: EvaluationContext): boolean {
    let answer = answers[condition];
    if (answer === notAsked) {
      answer = (conditions[condition] as CompiledCondition).holds(context) ? yes : no;
      answers[condition] = answer;
    }
    return answer === yes;
  }

  function numberFor(result: number, context: EvaluationContext): number {
    if (result >= 0) return result;
    return (rollouts[~result] as Rollout).decide(context).value ? splitOn : splitOff;
  }

  return (context, outcomeNumbers) => {
    outcomeNumbers.set(constants);
    evaluateRollouts(context, outcomeNumbers);
    answers.fill(notAsked);
    let at = 0;
    while (at < program.length) {
      const flag = program[at] as number;
      const end = program[at + 1] as number;
      let result = program[end - 1] as number;
      let rule = at + 2;
      while (rule < end - 1) {
        const nextRule = program[rule] as number;
        let condition = rule + 2;
        while (condition < nextRule && holds(program[condition] as number, context)) condition += 1;
        if (condition === nextRule) {
          result = program[rule + 1] as number;
          break;
        }
        rule = nextRule;
      }
      outcomeNumbers[flag] = numberFor(result, context);
      at = end;
    }
  };
}

const notAsked = 0;
const no = 1;
const yes = 2;
const splitOn = numberOfOutcome(outcomes.splitOn);
const splitOff = numberOfOutcome(outcomes.splitOff);

function assemble(flags: readonly CompiledFlag[]) {
  const constants = new Uint8Array(flags.length);
  const program: number[] = [];
  const conditions: CompiledCondition[] = [];
  const known = new Map<string | CompiledCondition, number>();
  const rollouts: Rollout[] = [];

  function numberOfCondition(condition: CompiledCondition): number {
    const identity = condition.sameAs ?? condition;
    let number = known.get(identity);
    if (number === undefined) {
      number = conditions.push(condition) - 1;
      known.set(identity, number);
    }
    return number;
  }

  function numberOfResult(result: Outcome | Rollout): number {
    return "decide" in result ? ~(rollouts.push(result) - 1) : numberOfOutcome(result);
  }

  function add(flag: number, { rules, otherwise }: Plan): void {
    const begin = program.push(flag, 0) - 2;
    for (const rule of rules) {
      const next = program.length + 2 + rule.conditions.length;
      program.push(next, numberOfResult(rule.result));
      for (const condition of rule.conditions) program.push(numberOfCondition(condition));
    }
    program[begin + 1] = program.push(numberOfResult(otherwise));
  }

  const withoutRules: PositionedRollout[] = [];
  flags.forEach(({ constant, plan }, position) => {
    if (constant !== undefined) constants[position] = numberOfOutcome(constant);
    else if (plan.rules.length === 0 && "decide" in plan.otherwise)
      withoutRules.push({ position, rollout: plan.otherwise });
    else add(position, plan);
  });
  return {
    constants,
    program: Int32Array.from(program),
    conditions,
    rollouts,
    evaluateRollouts: compileRollouts(withoutRules),
  };
}
