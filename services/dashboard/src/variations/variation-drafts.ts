import type { ValueType } from "../api/schema.d.ts";
import { isAmbiguousNumber, parseNumber } from "../ui/parse-number.ts";
import {
  compactJson,
  elementsOf,
  jsonProblem,
  membersOf,
  prettyJson,
  scalarProblem,
} from "./json-text.ts";

/** A variation as it is stored. `json` is the text of its value, without white space. */
export type StoredVariation = {
  readonly key: string;
  readonly name: string;
  readonly json: string;
};

/** A variation that is edited. `text` is what the field of its value contains. */
export type VariationDraft = {
  readonly uid: string;
  readonly key: string;
  readonly name: string;
  readonly text: string;
  /** The stored value. A field that was not changed keeps its text exactly. */
  readonly stored?: { readonly text: string; readonly json: string };
};

type VariationValue = Pick<VariationDraft, "text" | "stored">;

export type TypedValueType = Exclude<ValueType, "boolean">;

/** Limits of the API. */
export const maxVariations = 50;
const maxValueBytes = 64 * 1024;
const maxValuesBytes = 256 * 1024;
const keyPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Reads the variations in the text of a flag. The parsed body would not have the texts of the values. */
export const variationsIn = (flagText: string): StoredVariation[] =>
  elementsOf(membersOf(flagText).get("variations") ?? "[]").map((text) => {
    const members = membersOf(text);
    const textOf = (name: string) => JSON.parse(members.get(name) ?? '""') as string;
    return { key: textOf("key"), name: textOf("name"), json: members.get("value") ?? "null" };
  });

let lastUid = 0;

export function newVariation(type: TypedValueType): VariationDraft {
  lastUid += 1;
  return { uid: `new-${lastUid}`, key: "", name: "", text: type === "object" ? "{}" : "" };
}

/**
 * Makes drafts of stored variations. Their identities are the positions, so a repeated read changes none. `version`
 * distinguishes them from those of another version.
 */
export const draftsOf = (
  type: TypedValueType,
  stored: readonly StoredVariation[],
  version = "stored",
) =>
  stored.map(({ key, name, json }, at): VariationDraft => {
    const text = fieldText(type, json);
    return { uid: `${version}-${at}`, key, name, text, stored: { text, json } };
  });

/** Returns what the field of a value shows. */
function fieldText(type: TypedValueType, json: string): string {
  if (type === "string") return JSON.parse(json) as string;
  return type === "object" ? prettyJson(json) : json;
}

/** Returns the text of a valid value, as the API gets it. */
function jsonOf(type: TypedValueType, { text, stored }: VariationValue, locale: string): string {
  if (stored?.text === text) return stored.json;
  if (type === "string") return JSON.stringify(text);
  if (type === "object") return compactJson(text);
  const typed = text.trim();
  return numberPattern.test(typed) ? typed : String(parseNumber(typed, locale));
}

/** Returns valid drafts as the JSON text of a request. */
export function variationsText(
  type: TypedValueType,
  drafts: readonly VariationDraft[],
  locale: string,
): string {
  const texts = drafts.map((draft) => {
    const name = draft.name.trim();
    const named = name === "" ? "" : `,"name":${JSON.stringify(name)}`;
    return `{"key":${JSON.stringify(draft.key)},"value":${jsonOf(type, draft, locale)}${named}}`;
  });
  return `[${texts.join(",")}]`;
}

/** Messages by the identity of a variation and its field, and one about all of them. */
export type VariationProblems = ReadonlyMap<string, string>;

export const problemKey = (uid: string, field: "key" | "name" | "value"): string =>
  `${uid}/${field}`;
export const allKey = "all";

/** Checks drafts as the API does. */
export function variationProblems(
  type: TypedValueType,
  drafts: readonly VariationDraft[],
  locale: string,
): VariationProblems {
  const found = new Map<string, string>();
  let total = 0;
  for (const draft of drafts) {
    const { uid, key, name } = draft;
    if (!keyPattern.test(key))
      found.set(
        problemKey(uid, "key"),
        "Use up to 64 letters, digits, dots, underscores and hyphens, a letter or digit first.",
      );
    else if (drafts.some((other) => other.uid !== uid && other.key === key))
      found.set(problemKey(uid, "key"), "Another variation has this key.");
    if (name.length > 200) found.set(problemKey(uid, "name"), "At most 200 characters.");
    const problem = valueProblem(type, draft, locale);
    const bytes = problem === undefined ? bytesOf(jsonOf(type, draft, locale)) : 0;
    total += bytes;
    if (problem !== undefined) found.set(problemKey(uid, "value"), problem);
    else if (bytes > maxValueBytes)
      found.set(problemKey(uid, "value"), `At most ${maxValueBytes} bytes as JSON, not ${bytes}.`);
  }
  if (drafts.length === 0) found.set(allKey, "A typed flag needs at least one variation.");
  if (total > maxValuesBytes)
    found.set(allKey, `All values together have at most ${maxValuesBytes} bytes, not ${total}.`);
  return found;
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** Says why the text of a draft is no value of a type. A stored text stays valid. */
export function valueProblem(
  type: TypedValueType,
  { text, stored }: VariationValue,
  locale: string,
): string | undefined {
  if (stored?.text === text) return undefined;
  if (type === "string") return sentence(scalarProblem(JSON.stringify(text)));
  if (type === "object") return objectProblem(text);
  const typed = text.trim();
  if (isAmbiguousNumber(typed, locale))
    return "Ambiguous, because a point also separates thousands in your language. Use a decimal comma, or no separator.";
  if (numberPattern.test(typed)) return sentence(scalarProblem(typed));
  return parseNumber(typed, locale) === undefined
    ? "Enter a number without separators of thousands, such as 12.5 or 1e-3."
    : undefined;
}

function objectProblem(text: string): string | undefined {
  const problem = jsonProblem(text);
  if (problem !== undefined)
    return `Line ${problem.line}, column ${problem.column}: ${problem.text}.`;
  return text.trim().startsWith("{") ? undefined : 'Enter an object such as {"limit": 10}.';
}

const sentence = (text: string | undefined): string | undefined =>
  text && `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
