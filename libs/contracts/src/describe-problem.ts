import type { ErrorObject } from "ajv/dist/2020.js";

/** Name of the whole document in messages. Its JSON pointer is the empty string (RFC 6901). */
export const wholeDocument = '"" (the whole document)';

/**
 * Describes a validation error with the JSON pointer of the value, without the value itself. Members beside those that
 * the schema names, such as the attributes of a user, are not named: their names can be as private as their values.
 */
export function describeProblem(errors: readonly ErrorObject[], schema: object): string {
  const problem = decisive(errors);
  if (problem === undefined) return `${wholeDocument} is not valid`;
  const owner = ownerOfUnnamed(problem, schema);
  if (owner !== undefined)
    return `${owner || wholeDocument} has a member that ${expectationOf(problem)}`;
  return `${pointerOf(problem) || wholeDocument} ${expectationOf(problem)}`;
}

/**
 * Returns the pointer of the object with an invalid member that its schema does not name; undefined if every name in the
 * pointer of the error is in the schema. The names in a map, an object without named members, belong to the pointer.
 */
function ownerOfUnnamed(error: ErrorObject, schema: object): string | undefined {
  const keywords = error.schemaPath.split("/").slice(1, -1);
  const names = error.instancePath.split("/");
  let part = schema as { [keyword: string]: typeof part };
  let depth = 1;
  for (const [index, keyword] of keywords.entries()) {
    const isName = keywords[index - 1] === "properties";
    const isUnnamed = keyword === "additionalProperties" || keyword === "patternProperties";
    if (isUnnamed && !isName && part.properties !== undefined)
      return names.slice(0, depth).join("/");
    if (isName || keyword === "items" || isUnnamed) depth += 1;
    part = part[keyword] ?? {};
  }
  return undefined;
}

/**
 * Returns the error to report. ajv stops at the first error, but for `anyOf` it lists the errors of every branch and
 * then that no branch matched. A branch of another JSON type is ignored; the branch of the value's own type has the
 * useful error, perhaps for a nested value. If the value has the type of no branch, the error lists the expected types.
 */
function decisive(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const last = errors.at(-1);
  // ajv adds this error after those of the branch.
  if (last?.keyword === "if") return decisive(errors.slice(0, -1));
  if (last?.keyword !== "anyOf" || requirementOf(last) !== undefined) return last;
  const isOfKind = (error: ErrorObject) =>
    error.keyword !== "type" || error.instancePath !== last.instancePath;
  const ofItsKind = errors.slice(0, -1).filter(isOfKind);
  if (ofItsKind.length > 0) return decisive(deepest(ofItsKind));
  const types = errors.slice(0, -1).flatMap((error) => error.params.type as string | string[]);
  return { ...last, keyword: "type", params: { type: types } };
}

/**
 * Returns the errors without those of the value itself, if there are errors of its members: the value belongs to the
 * branch whose members it has.
 */
function deepest(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const depthOf = ({ instancePath }: ErrorObject) => instancePath.split("/").length;
  const depth = Math.max(...errors.map(depthOf));
  const isDecided = errors.some((error) => depthOf(error) < depth);
  return isDecided ? errors.filter((error) => depthOf(error) === depth) : errors;
}

function pointerOf({ instancePath, keyword, params }: ErrorObject): string {
  if (keyword === "required") return `${instancePath}/${escapePointer(params.missingProperty)}`;
  if (keyword === "discriminator") return `${instancePath}/${escapePointer(params.tag)}`;
  if (keyword === "additionalProperties")
    return `${instancePath}/${escapePointer(params.additionalProperty)}`;
  return instancePath;
}

/** Expectations by format. */
const formats = {
  uuid: "must be a UUID",
  date: "must be a date that exists, such as 2027-01-31, not before 1970",
  "date-time":
    "must be an ISO 8601 instant that exists, such as 2027-01-31T09:00:00Z or 2027-01-31T10:00:00+01:00",
};

function expectationOf(error: ErrorObject): string {
  switch (error.keyword) {
    case "required":
      return "is required";
    case "additionalProperties":
      return "is not a known field";
    case "type":
      return (
        requirementOfOperator(error) ??
        `must be ${orList([error.params.type as string | string[]].flat())}`
      );
    case "enum":
      return `must be one of ${(error.params.allowedValues as unknown[]).map((v) => JSON.stringify(v)).join(", ")}`;
    case "discriminator":
      return "must be one of the known kinds";
    case "const":
      return `must be ${JSON.stringify(error.params.allowedValue)}`;
    case "format":
      return formats[error.params.format as keyof typeof formats];
    case "propertyNames":
      return `has a name that ${requirementOf({ ...error, parentSchema: error.schema as object }) ?? "is not valid"}`;
    case "pattern":
    case "minProperties":
    case "anyOf":
    case "not":
      return requirementOf(error) ?? `${error.message}`;
    default:
      return error.message ?? "is not valid";
  }
}

/** Returns the description of the schema if it states a requirement. */
function requirementOf({ parentSchema }: ErrorObject): string | undefined {
  const description = parentSchema?.description as string | undefined;
  return description?.startsWith("must ") === true ? description : undefined;
}

/** Returns the requirement of the operator of a condition on its value, which says more than the type. */
function requirementOfOperator(error: ErrorObject): string | undefined {
  return error.schemaPath.includes("/then/") ? requirementOf(error) : undefined;
}

function orList(words: readonly string[]): string {
  if (words.length < 2) return words.join();
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** Escapes a name for a JSON pointer (RFC 6901). It cuts long names, so that a hostile name cannot fill a response. */
function escapePointer(name: string): string {
  const maxEchoedNameLength = 100;
  return name.slice(0, maxEchoedNameLength).replaceAll("~", "~0").replaceAll("/", "~1");
}
