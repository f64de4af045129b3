import { readFileSync } from "node:fs";
import type { z } from "zod";
import { ConfigurationError } from "./configuration-error.ts";

/** Texts about an environment variable, for the documentation and for error messages. */
type VariableNotes = {
  description: string;
  /** Completes the sentence "NAME must be …". */
  expects: string;
  /** Text for a default that is computed, or that is not readable as JSON. */
  documentedDefault?: string;
  /** The value is a secret. Error messages contain no values of other variables either. */
  secret?: boolean;
};

/** Attaches the notes to a variable's schema. Call it last, because zod's metadata belongs to one schema object. */
export function variable<S extends z.ZodType>(schema: S, notes: VariableNotes): S {
  return schema.meta(notes) as S;
}

/**
 * Parses the environment with a schema whose fields have the names of the variables. The error lists all problems, so
 * that an operator can fix them in one restart. It contains no values, because any of them may be a secret. An empty
 * variable counts as not set. The value can be in a file instead, whose path is in the variable with the suffix `_FILE`.
 */
export function readEnvironment<S extends z.ZodObject>(
  schema: S,
  env: Readonly<Record<string, string | undefined>>,
): z.output<S> {
  const given: Record<string, string> = {};
  const unread = new Map<string, string>();
  for (const name of Object.keys(schema.shape)) {
    const read = readVariable(name, env);
    if (typeof read === "string") given[name] = read;
    else if (read !== undefined) unread.set(name, read.problem);
  }
  const parsed = schema.safeParse(given);
  if (parsed.success && unread.size === 0) return parsed.data;
  const problems = (parsed.error?.issues ?? [])
    .filter(({ path }) => !unread.has(String(path[0])))
    .map((issue) => sentenceOf(schema, given, issue));
  throw new ConfigurationError([...new Set([...unread.values(), ...problems])]);
}

/** Returns the value of a variable, from the environment or from its file; undefined if it is not set. */
export function readVariable(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined | { problem: string } {
  const value = env[name] || undefined;
  const file = env[`${name}_FILE`] || undefined;
  if (file === undefined) return value;
  if (value !== undefined) return { problem: `Only one of ${name} and ${name}_FILE may be set.` };
  return (
    readWithoutLineBreak(file) ?? {
      problem: `${name}_FILE must be the path of a file with a value that this process can read.`,
    }
  );
}

/** Returns the content of a file without the line break at its end; undefined if it is empty or cannot be read. */
function readWithoutLineBreak(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "") || undefined;
  } catch {
    return undefined;
  }
}

/** Returns an issue as a sentence. With the parameter `isSentenceEnd`, its message follows the variable's name. */
function sentenceOf(
  schema: z.ZodObject,
  given: Record<string, string>,
  issue: z.core.$ZodIssue,
): string {
  // A rule for several variables has no path. Its message is a complete sentence.
  if (issue.path.length === 0) return issue.message;
  const name = String(issue.path[0]);
  const expects = notesOf(schema.shape[name])?.expects;
  const isSpecific = issue.code === "custom" && issue.params?.isSentenceEnd === true;
  const expectation = expects === undefined || isSpecific ? issue.message : `must be ${expects}`;
  return given[name] === undefined
    ? `${name} is not set: it ${expectation}.`
    : `${name} ${expectation}.`;
}

function notesOf(schema: unknown): Partial<VariableNotes> | undefined {
  return (schema as z.ZodType | undefined)?.meta() as Partial<VariableNotes> | undefined;
}

export type DocumentedVariable = {
  name: string;
  description: string;
  expects: string;
  /** Undefined if the variable is required. */
  defaultText: string | undefined;
  secret: boolean;
};

/** Returns the rows of the configuration table for a schema. */
export function documentVariables(schema: z.ZodObject): DocumentedVariable[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const notes = notesOf(field);
    return {
      name,
      description: notes?.description ?? "",
      expects: notes?.expects ?? "",
      defaultText: notes?.documentedDefault ?? defaultOf(field as z.ZodType),
      secret: notes?.secret ?? false,
    };
  });
}

/** Returns the default of a variable: the result of parsing `undefined`. */
function defaultOf(field: z.ZodType): string | undefined {
  const parsed = field.safeParse(undefined);
  if (!parsed.success) return undefined;
  if (parsed.data === undefined) return "not set";
  return Array.isArray(parsed.data) ? parsed.data.join(",") || "none" : String(parsed.data);
}
