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
 * variable counts as not set.
 */
export function readEnvironment<S extends z.ZodObject>(
  schema: S,
  env: Readonly<Record<string, string | undefined>>,
): z.output<S> {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = env[name];
    if (value !== undefined && value !== "") given[name] = value;
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => sentenceOf(schema, given, issue));
  throw new ConfigurationError([...new Set(problems)]);
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
