import { createHash } from "node:crypto";
import {
  type CreateFlag,
  expectedValue,
  type Flag as FlagResource,
  maxVariations,
  type StoredVariations,
  type ValueType,
} from "@halyard/contracts";
import {
  createProblem,
  elementTexts,
  isProblem,
  memberText,
  type Problem,
  RawJson,
  textOfBody,
  tokensOf,
} from "@halyard/http";
import type { Content, Flag, FlagEnvironment, StoredState } from "./flag.ts";
import { usesOf } from "./serve.ts";

/** Maximum sizes of values as JSON, in bytes: of one, of all of a flag, and of the largest ones of a project's flags. */
const maxValueBytes = 64 * 1024;
const maxValuesBytes = 256 * 1024;
const maxProjectValueBytes = 2 * 1024 * 1024;

/** Maximum depth of an object. */
const maxDepth = 20;

/** A request whose variations are as they are stored. */
export type WithStoredVariations<Request> = Omit<Request, "variations"> & {
  variations?: StoredVariations | undefined;
};

/**
 * Replaces the variations of a request by those that are stored, with the texts of the values without white space.
 * `body` is the parsed body of the request. Checks what does not depend on the flag.
 */
export function readVariations<Request extends object>(
  request: Request,
  body: { variations?: CreateFlag["variations"] },
): WithStoredVariations<Request> | Problem {
  if (body.variations === undefined) return request;
  const text = memberText(textOfBody(body) ?? "", "variations");
  const variations = storedVariations(body.variations, text);
  return isProblem(variations) ? variations : { ...request, variations };
}

/** Returns variations as they are stored. `text` is their JSON text in the request. */
export function storedVariations(
  variations: NonNullable<CreateFlag["variations"]>,
  text: string | undefined,
): StoredVariations | Problem {
  const texts = elementTexts(text ?? "[]");
  const stored: StoredVariations = [];
  for (const [index, { key, name }] of variations.entries()) {
    const pointer = `/variations/${index}`;
    if (stored.some((other) => other.key === key))
      return invalid(`${pointer}/key must not repeat the key of another variation`);
    const json = compactValue(memberText(texts[index] ?? "", "value") ?? "null");
    if (typeof json === "object") return invalid(`${pointer}/value ${json.problem}`);
    stored.push({ key, json, ...(name === undefined ? {} : { name }) });
  }
  const bytes = valueBytes({ variations: stored });
  if (bytes <= maxValuesBytes) return stored;
  return invalid(`/variations must have at most ${maxValuesBytes} bytes of values, not ${bytes}`);
}

const invalid = (message: string): Problem => createProblem("VALIDATION_001", message);

function typeOf(json: string): ValueType | undefined {
  if (json.startsWith('"')) return "string";
  if (json.startsWith("{")) return "object";
  return /^[-\d]/.test(json) ? "number" : undefined;
}

/** Returns the bytes of all values of a flag, which count in each environment. */
export const valueBytes = ({ variations }: Pick<Flag, "variations">): number =>
  (variations ?? []).reduce((sum, { json }) => sum + Buffer.byteLength(json), 0);

export const largestValueBytes = ({ variations }: Pick<Flag, "variations">): number =>
  Math.max(0, ...(variations ?? []).map(({ json }) => Buffer.byteLength(json)));

/** Rejects values that are too large together with those of the other flags. `bytes` is `sumLargestValues`. */
export function checkProjectValues(bytes: number): Problem | undefined {
  if (bytes <= maxProjectValueBytes) return undefined;
  return invalid(
    `/variations: the largest values of the flags of the project would have ${bytes} bytes together, more than ${maxProjectValueBytes}`,
  );
}

/** Removes white space from a valid JSON text, and the sign of `-0`. Returns a problem for a value that is not allowed. */
function compactValue(text: string): string | { problem: string } {
  const parts: string[] = [];
  let depth = 0;
  for (const token of tokensOf(text)) {
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") depth -= 1;
    if (depth > maxDepth) return { problem: `must have at most ${maxDepth} levels` };
    const checked = compactToken(token);
    if (typeof checked === "object") return checked;
    parts.push(checked);
  }
  const json = parts.join("");
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxValueBytes) return json;
  return { problem: `must have at most ${maxValueBytes} bytes as JSON, not ${bytes}` };
}

function compactToken(token: string): string | { problem: string } {
  if (token.startsWith('"')) {
    const value = JSON.parse(token) as string;
    if (value.isWellFormed() && !value.includes("\0")) return token;
    return { problem: "must not contain NUL characters or broken Unicode" };
  }
  if (!/^[-\d]/.test(token)) return token;
  const number = Number(token);
  if (!Number.isFinite(number)) return { problem: "must fit a double" };
  if (Number.isInteger(number) && !Number.isSafeInteger(number))
    return { problem: "must be an integer from -(2^53 - 1) to 2^53 - 1, or a text" };
  return number === 0 ? token.replace(/^-/, "") : token;
}

/** Checks that variations are those of a flag with a type: none for a boolean one, and values of the type otherwise. */
export function checkVariations(
  valueType: ValueType,
  variations: StoredVariations | undefined,
): Problem | undefined {
  if (valueType === "boolean")
    return variations === undefined
      ? undefined
      : invalid("/variations must be absent for a boolean flag, whose variations are on and off");
  if (variations === undefined)
    return invalid(
      `/variations is required: 1 to ${maxVariations} values of the type ${valueType}`,
    );
  const index = variations.findIndex(({ json }) => typeOf(json) !== valueType);
  if (index === -1) return undefined;
  return invalid(`/variations/${index}/value must be ${expectedValue[valueType]}`);
}

/**
 * Rejects variations without one that a state uses. `environments` are the environments of the project, and `states`
 * the states after the change.
 */
export function checkUsedVariations(
  variations: StoredVariations,
  states: readonly Pick<StoredState, "environmentId" | "content">[],
  environments: readonly FlagEnvironment[],
): Problem | undefined {
  const keys = new Set(variations.map(({ key }) => key));
  const lacking = states.flatMap(({ environmentId, content }) => {
    const { name = environmentId } = environments.find(({ id }) => id === environmentId) ?? {};
    return usesOf(content)
      .filter(({ variation }) => !keys.has(variation))
      .map(({ variation }) => ({ variation, environment: name }));
  });
  if (lacking.length === 0) return undefined;
  const used = [...Map.groupBy(lacking, ({ variation }) => variation)].map(([variation, uses]) => {
    const names = new Set(uses.map(({ environment }) => environment));
    return `${variation}, which the flag uses in ${[...names].join(", ")}`;
  });
  return createProblem(
    "CONFLICT_001",
    `/variations must keep ${used.join(", and ")}. Serve another variation there first.`,
  );
}

/** Maximum size of the state and the variations in a snapshot entry, which must fit into a message of 1 MiB. */
const maxEntryBytes = 1000 * 1024;

/**
 * Rejects variations that are too large together with a state. The limits of each allow it only for values with many
 * quotes or backslashes, which the entry contains as text in JSON.
 */
export function checkEntrySize(
  { variations }: Pick<Flag, "variations">,
  contents: readonly Content[],
): Problem | undefined {
  if (variations === null) return undefined;
  const sizeOf = (part: unknown) => Buffer.byteLength(JSON.stringify(part));
  const bytes = sizeOf(variations) + Math.max(...contents.map(sizeOf));
  if (bytes <= maxEntryBytes) return undefined;
  return invalid(
    `/variations and a state of the flag must have at most ${maxEntryBytes} bytes together, not ${bytes}`,
  );
}

/** Returns a problem that names the first variation that a restored state uses and the flag no longer has. */
export function checkRestorable(
  { variations }: Pick<Flag, "variations">,
  content: Content,
): Problem | undefined {
  const lacking = usesOf(content).find(
    ({ variation }) => !variations?.some(({ key }) => key === variation),
  );
  if (lacking === undefined) return checkEntrySize({ variations }, [content]);
  return createProblem(
    "CONFLICT_001",
    `The earlier state uses the variation ${lacking.variation}, which the flag no longer has.`,
  );
}

/** Returns the variations with the texts of their values, for responses. */
export const variationsResource = (variations: StoredVariations): FlagResource["variations"] =>
  variations.map(({ key, json, name }) => ({
    key,
    value: valueOfVariation({ json }),
    ...(name === undefined ? {} : { name }),
  }));

/** Returns the value of a variation, whose text a response contains unchanged. */
export const valueOfVariation = ({ json }: { json: string }): string =>
  new RawJson(json) as unknown as string;

/** Maximum size of a value in events, in bytes of JSON. */
const maxEventValueBytes = 1024;

/** Returns the variations as events contain them: a large value is its size and hash. None for a boolean flag. */
export const shortVariations = ({ variations }: Pick<Flag, "variations">) =>
  (variations ?? []).map(({ json, ...rest }) => {
    const bytes = Buffer.byteLength(json);
    if (bytes <= maxEventValueBytes) return { ...rest, value: JSON.parse(json) };
    return { ...rest, value: { sha256: createHash("sha256").update(json).digest("hex"), bytes } };
  });
