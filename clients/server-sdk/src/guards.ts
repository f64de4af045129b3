import type { EvaluationContext } from "@halyard/evaluation";
import { createContextReader } from "./context.ts";
import type { Log } from "./log.ts";

/** Keep errors in contexts away from the application. */
export type Guards = {
  /** Calls a function with the prepared context. Returns undefined, and logs, if the context is invalid. */
  withContext<T>(context: unknown, use: (prepared: EvaluationContext) => T): T | undefined;
  /** Calls a function that reads a context. Returns undefined, and logs, if reading an attribute throws. */
  guarded<T>(read: () => T): T | undefined;
};

export function createGuards(log: Log): Guards {
  const readContext = createContextReader(log);

  /** Getters and proxies run when an evaluation reads their attribute, and can throw. */
  function guarded<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      const name = error instanceof Error ? error.name : typeof error;
      log.once("warn", "invalid_context", `Invalid context: reading an attribute threw ${name}.`);
      return undefined;
    }
  }

  return {
    guarded,
    withContext: (context, use) =>
      guarded(() => {
        const prepared = readContext(context);
        if (prepared !== undefined) return use(prepared);
        log.once("warn", "invalid_context", "Invalid context: expected an object of attributes.");
        return undefined;
      }),
  };
}
