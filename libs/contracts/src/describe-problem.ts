import type { ErrorObject } from "ajv/dist/2020.js";

/** Names the whole document in messages: its JSON pointer is the empty string (RFC 6901). */
export const wholeDocument = '"" (the whole document)';

/** Says what is wrong with a value by JSON pointer, without repeating the value itself. */
export function describeProblem(errors: readonly ErrorObject[]): string {
  const problem = decisive(errors);
  if (problem === undefined) return `${wholeDocument} is not valid`;
  return `${pointerOf(problem) || wholeDocument} ${expectationOf(problem)}`;
}

/**
 * The error to tell. ajv stops at the first, but of a value that may be one of several kinds it lists
 * what each kind found wrong, and then that none fits. Kinds that the value is not of say nothing of
 * use; the one that it is of says what is wrong, perhaps further inside. When it is of none, the kinds
 * are what was expected.
 */
function decisive(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const last = errors.at(-1);
  // ajv adds it to what the branch found wrong.
  if (last?.keyword === "if") return decisive(errors.slice(0, -1));
  if (last?.keyword !== "anyOf" || requirementOf(last) !== undefined) return last;
  const isOfKind = (error: ErrorObject) =>
    error.keyword !== "type" || error.instancePath !== last.instancePath;
  const ofItsKind = errors.slice(0, -1).filter(isOfKind);
  if (ofItsKind.length > 0) return decisive(ofItsKind);
  const types = errors.slice(0, -1).flatMap((error) => error.params.type as string | string[]);
  return { ...last, keyword: "type", params: { type: types } };
}

function pointerOf({ instancePath, keyword, params }: ErrorObject): string {
  if (keyword === "required") return `${instancePath}/${escapePointer(params.missingProperty)}`;
  if (keyword === "additionalProperties")
    return `${instancePath}/${escapePointer(params.additionalProperty)}`;
  return instancePath;
}

function expectationOf(error: ErrorObject): string {
  switch (error.keyword) {
    case "required":
      return "is required";
    case "additionalProperties":
      return "is not a known field";
    case "type":
      return `must be ${orList([error.params.type as string | string[]].flat())}`;
    case "enum":
      return `must be one of ${(error.params.allowedValues as unknown[]).map((v) => JSON.stringify(v)).join(", ")}`;
    case "const":
      return `must be ${JSON.stringify(error.params.allowedValue)}`;
    case "format":
      return error.params.format === "uuid"
        ? "must be a UUID"
        : "must be an ISO 8601 instant that exists, such as 2027-01-31T09:00:00Z or 2027-01-31T10:00:00+01:00";
    case "pattern":
    case "minProperties":
    case "anyOf":
    case "not":
      return requirementOf(error) ?? `${error.message}`;
    default:
      return error.message ?? "is not valid";
  }
}

/** The schema's own words, where its description says what the value must be. */
function requirementOf({ parentSchema }: ErrorObject): string | undefined {
  const description = parentSchema?.description as string | undefined;
  return description?.startsWith("must ") === true ? description : undefined;
}

function orList(words: readonly string[]): string {
  if (words.length < 2) return words.join();
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** JSON pointer escaping (RFC 6901); names are cut so that a hostile field name cannot fill an answer. */
function escapePointer(name: string): string {
  const maxEchoedNameLength = 100;
  return name.slice(0, maxEchoedNameLength).replaceAll("~", "~0").replaceAll("/", "~1");
}
