import type { AttributeCondition, Condition, Operator } from "../api/schema.d.ts";
import { isTime } from "../state/words.ts";
import { parseNumber } from "../ui/parse-number.ts";

export type Value = AttributeCondition["value"];
export type OperatorName = AttributeCondition["operator"];
export type Category = Operator["category"];

export type Item = Extract<Value, readonly unknown[]>[number];

/** Returns the lines of a text without those that are empty or repeated. */
export const linesOf = (text: string): string[] => [
  ...new Set(
    text
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  ),
];

/** Returns the items of a list value, which is an array or a text with commas. */
export function itemsOf(value: Value): readonly Item[] {
  if (Array.isArray(value)) return value;
  return String(value)
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean);
}

/** Returns the value for another operator's category, so that a change of the operator keeps what was typed. */
export function valueFor(category: Category | undefined, value: Value): Value {
  if (category === "list") return [...itemsOf(value)];
  return Array.isArray(value) ? value.join(", ") : value;
}

/** Reads a typed number. A text from which the number would drop a character stays a text. */
export function numberFrom(text: string, locale: string): Value {
  const value = parseNumber(text, locale);
  return value !== undefined && String(value) === text ? value : text;
}

/** Reads a number in the writing of the locale when the person leaves its field. The API accepts only a plain one. */
export const plainNumber = (value: Value, locale: string): Value =>
  Number.isNaN(Number(value)) ? (parseNumber(String(value), locale) ?? value) : value;

/** Returns a date-time for a field of the browser, in the local time zone. */
export function toLocalInput(value: string): string {
  const instant = new Date(value);
  if (Number.isNaN(instant.getTime())) return "";
  const local = new Date(instant.getTime() - instant.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, instant.getSeconds() === 0 ? 16 : 19);
}

/** Reads a local date-time. Rules contain UTC, because a date-time in a rule needs a zone. */
export function fromLocalInput(text: string): string {
  const instant = new Date(text);
  return Number.isNaN(instant.getTime()) ? "" : instant.toISOString().replace(".000Z", "Z");
}

const exampleIn = (locale: string) => new Intl.NumberFormat(locale).format(99.9);

/** Says what is wrong with a value, as far as the browser can tell. The API checks the rest. */
export function valueProblem(
  category: Category | undefined,
  value: Value,
  locale: string,
): string | undefined {
  switch (category) {
    case "list":
      return itemsOf(value).length === 0 ? "Enter at least one value." : undefined;
    case "number":
      if (value === "") return "Enter a number.";
      return typeof value === "number" ||
        isTime(value) ||
        parseNumber(String(value), locale) !== undefined
        ? undefined
        : `Enter a number without separators of thousands, such as 18 or ${exampleIn(locale)}.`;
    case "semver":
      return /^v?\d+(\.\d+){0,2}([-+].+)?$/.test(String(value).trim())
        ? undefined
        : "Enter a version such as 2.3.0.";
    case "string":
    case undefined:
      return value === "" ? "Enter a value." : undefined;
  }
}

/** Common names of attributes. */
const common = ["id", "email", "country", "plan", "app_version"];

/** Returns names of attributes to suggest: those of the project's rules first, the most used first. */
export function attributeNames(rules: readonly { conditions: readonly Condition[] }[]): string[] {
  const uses = new Map<string, number>();
  for (const condition of rules.flatMap(({ conditions }) => conditions)) {
    if (!("attribute" in condition)) continue;
    uses.set(condition.attribute, (uses.get(condition.attribute) ?? 0) + 1);
  }
  const used = [...uses.keys()].toSorted((a, b) => (uses.get(b) ?? 0) - (uses.get(a) ?? 0));
  return [...new Set([...used, ...common])].filter(Boolean);
}
