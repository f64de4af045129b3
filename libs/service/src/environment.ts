import type { z } from "zod";
import { ConfigurationError } from "./configuration-error.ts";

/** What the documentation and the error messages say about an environment variable. */
export type VariableNotes = {
  description: string;
  /** Ends the sentence "NAME must be …". */
  expects: string;
  /** For a default that is computed, or that reads badly as JSON. */
  documentedDefault?: string;
  /** Marks what must never be shown. Values of other variables are not shown either. */
  secret?: boolean;
};

/** Attaches the notes to a variable's schema. It goes last: zod's metadata belongs to one schema object. */
export function variable<S extends z.ZodType>(schema: S, notes: VariableNotes): S {
  return schema.meta(notes) as S;
}

/**
 * Parses the environment by a schema whose fields are named as the variables are. It reports every
 * problem at once, so that nobody restarts a service once per mistake, and repeats no value, because
 * any of them may be a secret. An empty variable counts as one that is not set.
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

/** An issue with the parameter `isSentenceEnd` has a message that continues a sentence after the variable's name. */
function sentenceOf(
  schema: z.ZodObject,
  given: Record<string, string>,
  issue: z.core.$ZodIssue,
): string {
  // A rule over several variables has no path; its message is a sentence that names them.
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
  /** Undefined: it must be set. */
  defaultText: string | undefined;
  secret: boolean;
};

/** The rows of a configuration table, from the schema that also parses. */
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

/** A schema that takes `undefined` has a default; what it then answers is that default. */
function defaultOf(field: z.ZodType): string | undefined {
  const parsed = field.safeParse(undefined);
  if (!parsed.success) return undefined;
  if (parsed.data === undefined) return "not set";
  return Array.isArray(parsed.data) ? parsed.data.join(",") || "none" : String(parsed.data);
}
