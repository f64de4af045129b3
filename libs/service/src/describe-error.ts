/**
 * The form of errors in logs, without any text that could contain a value.
 *
 * Messages of PostgreSQL, HTTP clients and parsers repeat rows, URLs with credentials, and input. Logs identify an
 * error without them: by type, code, names of database objects, and stack frames. They contain a message only if its
 * class sets `hasSafeMessage = true`, which declares that the message contains no values of callers.
 */
type DescribedError = {
  type: string;
  message?: string;
  stack?: string[];
  cause?: DescribedError;
} & Partial<Record<(typeof identifiers)[number], string | number>>;

/** Members with identifiers: codes of Node.js, NATS and PostgreSQL, and names of database objects. */
const identifiers = [
  ...(["code", "errno", "syscall", "status", "severity", "routine"] as const),
  ...(["schema", "table", "column", "constraint"] as const),
];

/** Maximum number of logged causes of an error. A chain of causes can be cyclic. */
const deepestLoggedCause = 5;

export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { type: typeof error };
  const described: DescribedError = { type: identifierIn(error.name) ?? "Error" };
  if (hasSafeMessage(error)) described.message = error.message;
  for (const name of identifiers) {
    const value = identifierIn((error as unknown as Record<string, unknown>)[name]);
    if (value !== undefined) described[name] = value;
  }
  described.stack = framesOf(error);
  if (error.cause !== undefined && depth < deepestLoggedCause)
    described.cause = describeError(error.cause, depth + 1);
  return described;
}

/** Returns the error as lines for a terminal. */
export function printError(error: unknown): string {
  const { type, message, stack = [], cause, ...details } = describeError(error);
  const title = [type, ...Object.values(details)].join(" ");
  const head = message === undefined ? title : `${title}: ${message}`;
  const lines = [head, ...stack.map((frame) => `    at ${frame}`)];
  if (cause !== undefined && error instanceof Error)
    lines.push(`Caused by: ${printError(error.cause)}`);
  return lines.join("\n");
}

function hasSafeMessage(error: Error): boolean {
  return "hasSafeMessage" in error && error.hasSafeMessage === true;
}

/** Matches identifiers. Text with spaces or quotes is a message, and long text may be a value. */
const identifier = /^[\w$.:-]{1,63}$/;

function identifierIn<T>(value: T): (T & (string | number)) | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && identifier.test(value) ? value : undefined;
}

/** Matches a stack frame, which ends with a position in a file. Other lines of the stack belong to the message. */
const frame = /^ {4}at (?<place>(?:.* \()?(?:file:\/\/|node:|\/)[^\s()]+:\d+:\d+\)?)$/;

function framesOf({ stack = "", message }: Error): string[] {
  // The message can contain lines that look like frames.
  const end = message === "" ? -1 : stack.indexOf(message);
  const frames = end === -1 ? stack : stack.slice(end + message.length);
  return frames.split("\n").flatMap((line) => frame.exec(line)?.groups?.place ?? []);
}
