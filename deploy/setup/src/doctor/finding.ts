/** The result of a check. An operator should handle a `warning` soon, and a `problem` now. */
export type Finding = {
  check: string;
  status: "ok" | "warning" | "problem";
  /** The subject of the check and its result, in one sentence. */
  text: string;
  /** The next step of the operator. Absent if the status is `ok`. */
  advice?: string;
};

export const ok = (check: string, text: string): Finding => ({ check, status: "ok", text });

export const warning = (check: string, text: string, advice: string): Finding => ({
  ...{ check, status: "warning", text, advice },
});

export const problem = (check: string, text: string, advice: string): Finding => ({
  ...{ check, status: "problem", text, advice },
});

/** Returns a finding with the first faults of a list; for an empty list, `ok` with the text. */
export function judged(
  check: string,
  text: string,
  faults: readonly string[],
  advice: string,
): Finding {
  const shown = faults.slice(0, maxShown).join("; ");
  const more = faults.length > maxShown ? `, and ${faults.length - maxShown} more` : "";
  return faults.length === 0 ? ok(check, text) : problem(check, `${shown}${more}`, advice);
}

const maxShown = 5;

/** Runs the checks of one server. A failure of the whole becomes a finding. */
export async function findingsOf(
  check: string,
  advice: string,
  run: () => Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await run();
  } catch (error) {
    return [problem(check, reasonOf(error), advice)];
  }
}

/** Bounds the chain of causes, which can be cyclic. */
const deepestCause = 5;

/**
 * Returns the texts and codes of an error's innermost causes. Outer errors say little, such as `fetch failed`, and the
 * failure to connect to a name with several addresses has no text.
 */
function reasonOf(error: unknown, depth = 0): string {
  if (!(error instanceof Error)) return String(error);
  const causes = causesOf(error);
  if (causes.length > 0 && depth < deepestCause)
    return [...new Set(causes.map((cause) => reasonOf(cause, depth + 1)))].join("; ");
  const text = error.message || error.name;
  const { code } = error as NodeJS.ErrnoException;
  return typeof code !== "string" || text.includes(code) ? text : `${text} (${code})`;
}

function causesOf(error: Error): unknown[] {
  if (error instanceof AggregateError) return error.errors;
  return error.cause === undefined ? [] : [error.cause];
}

/** Returns what to say about the difference to another clock. Signatures and sessions allow for seconds. */
export function clockFinding(server: string, offsetMs: number): Finding {
  const text = `the clock of ${server} differs by ${Math.round(offsetMs)} ms from this machine's`;
  const isClose = Math.abs(offsetMs) <= maxOffsetMs;
  return isClose
    ? ok("clocks", text)
    : problem("clocks", text, "Synchronize the clocks of all machines, for instance with chrony.");
}

const maxOffsetMs = 1_000;
