import { compileRollouts, type PositionedRollout } from "./compile-rollouts.ts";
import type { CompiledCondition, CompiledFlag, Plan } from "./compiled.ts";
import type { EvaluationContext } from "./context.ts";
import { codeOfOutcome, type Outcome, outcomes } from "./outcome.ts";
import type { Rollout } from "./rollout.ts";

/**
 * Evaluates many flags for one user. The results are the same as those of `evaluate` for each flag, in 0.75 of the time
 * (bench `targeting`, the rows of 100 and 1,000 flags). Conditions that several flags share, such as a country or a
 * plan, are evaluated once. All flags form one list of numbers, the program, instead of thousands of functions.
 *
 * For each flag with rules, the program contains the flag's position, the offset of the next flag, the rules, and the
 * result if no rule matches. A rule consists of the offset of the next rule, its result, and the indexes of its
 * conditions. A result is the code of an outcome, or the complement of the index of a rollout, which is negative. A
 * condition is evaluated when the first rule needs it.
 */
export type EvaluateAll = (
  context: EvaluationContext,
  /** Receives the outcome code of each flag, in the order of the flags. */
  outcomeCodes: Uint8Array,
) => void;

export function compileAll(flags: readonly CompiledFlag[]): EvaluateAll {
  const { constants, program, conditions, rollouts, evaluateRollouts } = assemble(flags);
  const states = new Uint8Array(conditions.length);

  function holds(condition: number, context: EvaluationContext): boolean {
    let state = states[condition];
    if (state === notEvaluated) {
      state = (conditions[condition] as CompiledCondition).holds(context) ? yes : no;
      states[condition] = state;
    }
    return state === yes;
  }

  function codeFor(result: number, context: EvaluationContext): number {
    if (result >= 0) return result;
    return (rollouts[~result] as Rollout).decide(context).value ? splitOn : splitOff;
  }

  return (context, outcomeCodes) => {
    outcomeCodes.set(constants);
    evaluateRollouts(context, outcomeCodes);
    states.fill(notEvaluated);
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
      outcomeCodes[flag] = codeFor(result, context);
      at = end;
    }
  };
}

const isById = ({ unit }: Rollout): boolean => unit === undefined;

const notEvaluated = 0;
const no = 1;
const yes = 2;
const splitOn = codeOfOutcome(outcomes.splitOn);
const splitOff = codeOfOutcome(outcomes.splitOff);

function assemble(flags: readonly CompiledFlag[]) {
  const constants = new Uint8Array(flags.length);
  const program: number[] = [];
  const conditions: CompiledCondition[] = [];
  const known = new Map<string | CompiledCondition, number>();
  const rollouts: Rollout[] = [];

  function indexOfCondition(condition: CompiledCondition): number {
    const identity = condition.sameAs ?? condition;
    let number = known.get(identity);
    if (number === undefined) {
      number = conditions.push(condition) - 1;
      known.set(identity, number);
    }
    return number;
  }

  function codeOfResult(result: Outcome | Rollout): number {
    return "decide" in result ? ~(rollouts.push(result) - 1) : codeOfOutcome(result);
  }

  function add(flag: number, { rules, otherwise }: Plan): void {
    const begin = program.push(flag, 0) - 2;
    for (const rule of rules) {
      const next = program.length + 2 + rule.conditions.length;
      program.push(next, codeOfResult(rule.result));
      for (const condition of rule.conditions) program.push(indexOfCondition(condition));
    }
    program[begin + 1] = program.push(codeOfResult(otherwise));
  }

  const withoutRules: PositionedRollout[] = [];
  flags.forEach(({ constant, plan }, position) => {
    if (constant !== undefined) constants[position] = codeOfOutcome(constant);
    else if (plan.rules.length === 0 && "decide" in plan.otherwise && isById(plan.otherwise))
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
