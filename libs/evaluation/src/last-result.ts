import type { EvaluationContext } from "./context.ts";

/** The results of one evaluation in steps, by the function of a context that returned them. */
export type Pass = Map<object, unknown>;

type Functions<T> = {
  of: (context: EvaluationContext) => T;
  inSteps: (context: EvaluationContext, pass: Pass) => Generator<undefined, T>;
};

/**
 * A function of a context that keeps its last result. It keeps the number of the context instead of the context, which
 * contains the attributes of a user. Flags that refer to the same audience or flag are evaluated one after another, so
 * one result is enough. Between the steps of one evaluation, others can replace the result; `pass` keeps it meanwhile.
 */
export class LastResult<T extends object | boolean> {
  readonly #compute: Functions<T>;
  #number = -1;
  #result: T | undefined = undefined;

  constructor(compute: Functions<T>) {
    this.#compute = compute;
  }

  of(context: EvaluationContext): T {
    if (context.number !== this.#number) this.#put(context, this.#compute.of(context));
    return this.#result as T;
  }

  /** Returns the result like `of`, but computes it in steps, once in a pass. The next call of `of` has the result. */
  *inSteps(context: EvaluationContext, pass: Pass): Generator<undefined, T> {
    const known = pass.get(this) as T | undefined;
    const result = known ?? (yield* this.#compute.inSteps(context, pass));
    pass.set(this, result);
    this.#put(context, result);
    return result;
  }

  #put({ number }: EvaluationContext, result: T): void {
    this.#number = number;
    this.#result = result;
  }
}
