/**
 * The operators. To add one, describe it here, in the category of its values, and implement it in the file of that
 * category (`compileComparison` selects it). Then add cases to `conformance`.
 */
const catalogue = {
  equals: {
    category: "string",
    description: "The attribute equals this text. Case is ignored.",
    example: "plan equals pro",
  },
  not_equals: {
    category: "string",
    description:
      "The attribute is present and does not equal this text. Case is ignored. If it is an array, no element equals this text.",
    example: "plan not_equals free",
  },
  contains: {
    category: "string",
    description: "The attribute contains this text. Case is ignored.",
    example: "user_agent contains firefox",
  },
  not_contains: {
    category: "string",
    description:
      "The attribute is present and does not contain this text. Case is ignored. If it is an array, no element contains this text.",
    example: "email not_contains +test",
  },
  starts_with: {
    category: "string",
    description: "The attribute starts with this text. Case is ignored.",
    example: "path starts_with /checkout",
  },
  ends_with: {
    category: "string",
    description: "The attribute ends with this text. Case is ignored.",
    example: "email ends_with @example.com",
  },
  matches_regex: {
    category: "string",
    description:
      "This regular expression (RE2 syntax) matches anywhere in the attribute. Case matters unless it starts with (?i). ^ and $ anchor it to the start and the end.",
    example: "email matches_regex ^[a-z]+@example\\.(com|org)$",
    valueIsPattern: true,
  },
  in: {
    category: "list",
    description:
      "The attribute equals one of these values. Case is ignored. The list is an array or a comma-separated text.",
    example: "country in DE,AT,CH",
  },
  not_in: {
    category: "list",
    description:
      "The attribute is present and equals none of these values. Case is ignored. The list is an array or a comma-separated text.",
    example: "country not_in US,CA",
  },
  gt: {
    category: "number",
    description: "The attribute is a number greater than this one, or a date-time after this one.",
    example: "age gt 17",
  },
  gte: {
    category: "number",
    description: "The attribute is this number or a greater one, or this date-time or a later one.",
    example: "signed_up_at gte 2027-01-01T00:00:00Z",
  },
  lt: {
    category: "number",
    description: "The attribute is a number less than this one, or a date-time before this one.",
    example: "cart_total lt 99.90",
  },
  lte: {
    category: "number",
    description:
      "The attribute is this number or a smaller one, or this date-time or an earlier one.",
    example: "trial_ends_at lte 2027-06-30T23:59:59+02:00",
  },
  semver_eq: {
    category: "semver",
    description: "The attribute is this version. 1.2 means 1.2.0, and build metadata is ignored.",
    example: "app_version semver_eq 2.3.0",
  },
  semver_gt: {
    category: "semver",
    description: "The attribute is a later version than this one.",
    example: "app_version semver_gt 2.3.0",
  },
  semver_gte: {
    category: "semver",
    description: "The attribute is this version or a later one.",
    example: "app_version semver_gte 2.3.0",
  },
  semver_lt: {
    category: "semver",
    description:
      "The attribute is an earlier version than this one. A pre-release comes before its release.",
    example: "app_version semver_lt 3.0.0-rc.1",
  },
  semver_lte: {
    category: "semver",
    description: "The attribute is this version or an earlier one.",
    example: "app_version semver_lte 2.9",
  },
} as const satisfies Record<string, CatalogueEntry>;

export type OperatorName = keyof typeof catalogue;

/** The operators of a category. The file of a category compiles only if it implements all of them. */
export type OperatorOf<Category extends OperatorCategory> = {
  [Name in OperatorName]: (typeof catalogue)[Name]["category"] extends Category ? Name : never;
}[OperatorName];

/** Determines which values an operator supports. */
export type OperatorCategory = "string" | "list" | "number" | "semver";

/** An operator, described for users who write rules. */
type Operator = {
  readonly name: string;
  readonly category: OperatorCategory;
  readonly description: string;
  readonly example: string;
};

type CatalogueEntry = Omit<Operator, "name"> & {
  /** Set if the value is a regular expression: its syntax and size are checked, and evaluating it is costly. */
  readonly valueIsPattern?: true;
};

/** All operators. The operators of a category are adjacent. */
export const operatorNames = Object.keys(catalogue) as readonly OperatorName[];

export const operators: readonly Operator[] = operatorNames.map((name) => {
  const { category, description, example } = catalogue[name];
  return { name, category, description, example };
});

const entries: ReadonlyMap<unknown, CatalogueEntry> = new Map(Object.entries(catalogue));

/** Returns the category of an operator. Stored data can contain any value in its place. */
export function categoryOf(operator: OperatorName): OperatorCategory;
export function categoryOf(operator: unknown): OperatorCategory | undefined;
export function categoryOf(operator: unknown): OperatorCategory | undefined {
  return entries.get(operator)?.category;
}

/** Returns whether the value of an operator is a regular expression. */
export function hasPattern(operator: unknown): boolean {
  return entries.get(operator)?.valueIsPattern === true;
}

/** Values that the operators of each category support, for error messages and the OpenAPI document. */
export const expectedValues: { readonly [category in OperatorCategory]: string } = {
  string: "a text, a number or a boolean for this operator, not an array",
  list: 'a list for this operator: an array of texts, numbers or booleans, or a text with commas such as "DE,AT,CH"',
  number:
    'a number for this operator, such as 18 or "18.5", or a date-time with time and zone, such as "2027-01-31T09:00:00Z"',
  semver: 'a version as a text for this operator, such as "2.3.0" or "3.0.0-rc.1"',
};

export const operatorCategories = Object.keys(expectedValues) as readonly OperatorCategory[];

/** Returns whether an operator is of a category. Stored data can contain any value in its place. */
export function isOfCategory<Category extends OperatorCategory>(
  operator: OperatorName,
  category: Category,
): operator is OperatorOf<Category> {
  return categoryOf(operator) === category;
}

/** Returns whether `match_case` applies to an operator. Regular expressions always match case, unless they say (?i). */
export function canMatchCase(operator: OperatorName): boolean {
  const category = categoryOf(operator);
  return category === "list" || (category === "string" && !hasPattern(operator));
}
