/** What a condition can ask of an attribute, and what kind of value it compares with. There are these 18 and no others. */
const categories = {
  equals: "string",
  not_equals: "string",
  contains: "string",
  not_contains: "string",
  starts_with: "string",
  ends_with: "string",
  matches_regex: "string",
  in: "list",
  not_in: "list",
  gt: "number",
  gte: "number",
  lt: "number",
  lte: "number",
  semver_eq: "semver",
  semver_gt: "semver",
  semver_gte: "semver",
  semver_lt: "semver",
  semver_lte: "semver",
} as const;

export type OperatorName = keyof typeof categories;

export type OperatorCategory = (typeof categories)[OperatorName];

/** Those of a category together. */
export const operatorNames = Object.keys(categories) as readonly OperatorName[];

/** Stored data may hold anything where an operator should be, so anything may be asked for. */
export const operatorCategories: ReadonlyMap<unknown, OperatorCategory> = new Map(
  Object.entries(categories),
);

export function categoryOf(operator: OperatorName): OperatorCategory {
  return categories[operator];
}
